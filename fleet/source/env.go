package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The variables that a profile may not set. [EnvPolicy] names them.
var (
	refusedEnv = []string{
		"PATH", "ENV", "GODEBUG", "GOTRACEBACK", "GOCOVERDIR", "GOFLAGS", "IFS", "SHELL", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CLASSPATH", "_JAVA_OPTIONS",
		"GLIBC_TUNABLES", "HOME", "TMPDIR", "TMP", "TEMP", "KUBECONFIG", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN",
		"USERPROFILE", "APPDATA", "COMSPEC", "PATHEXT", "EDITOR", "VISUAL", "PAGER", "BROWSER", "LOCPATH", "NLSPATH", "TZDIR",
		"KUBERNETES_EXEC_INFO", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
	}
	refusedEnvPrefixes = []string{
		"LD_", "DYLD_", "BASH_", "PYTHON", "PERL", "RUBY", "GEM_", "BUNDLE_", "NODE_", "NPM_", "JAVA_", "JDK_", "DOTNET_", "COMPLUS_",
		"CORECLR_", "COR_", "GIT_", "SSH_", "OPENSSL_", "SSL_", "CURL_", "XDG_", "MALLOC_", "GCONV_", "CLOUDSDK_PYTHON", "LUA_", "PHP",
	}
	refusedEnvSuffixes = []string{
		"_FILE", "_DIR", "_PATH", "_HOME", "_CONFIG", "_PROXY", "_URL", "_ENDPOINT", "_HOST", "_BUNDLE", "_CREDENTIALS", "_OPTIONS", "_PRELOAD",
	}
)

// checkEnv returns an error for a variable that no profile may set.
func checkEnv(env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		upper := strings.ToUpper(name)
		is := func(part string) bool { return strings.HasPrefix(upper, part) }
		ends := func(part string) bool { return strings.HasSuffix(upper, part) }
		url := strings.Contains(upper, "_ENDPOINT_URL") // AWS_ENDPOINT_URL_STS
		if !isEnvName(name) || strings.ContainsRune(env[name], 0) || url || slices.Contains(refusedEnv, upper) ||
			slices.ContainsFunc(refusedEnvPrefixes, is) || slices.ContainsFunc(refusedEnvSuffixes, ends) {
			return fmt.Errorf("its extension %s sets %q, which is refused: see source.EnvPolicy", profileEnv, name)
		}
	}
	return nil
}

// isEnvName reports whether a text is the name of a variable. One with an equals sign would set
// another variable.
func isEnvName(name string) bool {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	})
}
