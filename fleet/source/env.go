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
		"ENV", "GODEBUG", "GOTRACEBACK", "GOFLAGS", "IFS", "SHELL", "SHELLOPTS", "BASHOPTS", "PS4", "_JAVA_OPTIONS",
		"GLIBC_TUNABLES", "TMP", "TEMP", "KUBECONFIG", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN",
		"USERPROFILE", "APPDATA", "LOCALAPPDATA", "COMSPEC", "VISUAL", "INPUTRC", "NETRC", "TERMCAP",
	}
	refusedEnvPrefixes = []string{
		"LD_", "DYLD_", "BASH_", "PYTHON", "PERL", "RUBY", "GEM_", "NODE_", "NPM_", "JAVA_", "JDK_", "DOTNET_", "COMPLUS_",
		"CORECLR_", "COR_", "GIT_", "SSH_", "OPENSSL_", "CURL_", "XDG_", "MALLOC_", "GCONV_", "CLOUDSDK_PYTHON", "LUA_", "PHP",
		"AWS_CONTAINER_", "KRB5", "LESS", "TERMINFO", "KUBERNETES_", "SOCKS_",
	}
	refusedEnvParts = []string{ // anywhere in a name
		"FILE", "PATH", "HOME", "_DIR", "CREDENTIAL", "PROXY", "PROXIES", "ENDPOINT", "METADATA", "UNIVERSE", "_URI", "_URL", "_ADDR", "_HOST",
		"SSL", "TLS", "CERT", "BUNDLE", "VERIF", "VALIDAT", "INSECURE", "PRELOAD", "EXECUTABLE", "ASKPASS", "PAGER", "EDITOR", "BROWSER", "_COMMAND",
	}
	refusedEnvSuffixes = []string{"DIR", "URI", "URL", "_CONFIG", "_OPTIONS", "_OPTS"}
)

// checkEnv returns an error for a variable that no profile may set.
func checkEnv(env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		upper := strings.ToUpper(name)
		parts := strings.ReplaceAll(upper, "PROFILE", "_") // AWS_PROFILE names no file
		is := func(part string) bool { return strings.HasPrefix(upper, part) }
		ends := func(part string) bool { return strings.HasSuffix(upper, part) }
		has := func(part string) bool { return strings.Contains(parts, part) }
		if !isEnvName(name) || strings.ContainsRune(env[name], 0) || slices.Contains(refusedEnv, upper) ||
			slices.ContainsFunc(refusedEnvPrefixes, is) || slices.ContainsFunc(refusedEnvParts, has) || slices.ContainsFunc(refusedEnvSuffixes, ends) {
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
