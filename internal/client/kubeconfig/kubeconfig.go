// Package kubeconfig reads the configuration of a client by kubectl's rules: flags, environment,
// files, and the credentials of a pod.
package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/internal/base/asjson"
)

// BindFlags adds kubectl's connection flags to flags, and returns the function that reads the
// configuration, and the default namespace, once they are parsed.
func BindFlags(flags *pflag.FlagSet) func() (*rest.Config, string, error) {
	var kubeconfig string
	flags.StringVar(&kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use")
	flags.String("cache-dir", "", "Accepted and ignored: discovery is held in memory")
	extras := flags.StringArray("as-user-extra", nil,
		"User extras to impersonate for the operation, key=value; repeat it for several values of a key")
	overrides := &clientcmd.ConfigOverrides{}
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	// API servers no longer take passwords.
	names.AuthOverrideFlags.Username.LongName = ""
	names.AuthOverrideFlags.Password.LongName = ""
	clientcmd.BindOverrideFlags(overrides, flags, names)
	return func() (*rest.Config, string, error) {
		if !flags.Parsed() {
			return nil, "", errors.New("load the client configuration: the flags are not parsed yet")
		}
		var err error
		if overrides.AuthInfo.ImpersonateUserExtra, err = userExtras(*extras); err != nil {
			return nil, "", fmt.Errorf("load the client configuration: %w", err)
		}
		return Load(kubeconfig, overrides)
	}
}

// userExtras reads the values of --as-user-extra; nil for none.
func userExtras(flags []string) (extras map[string][]string, err error) {
	for _, flag := range flags {
		key, value, found := strings.Cut(flag, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("--as-user-extra %q: it is key=value", flag)
		}
		if extras == nil {
			extras = make(map[string][]string)
		}
		extras[key] = append(extras[key], value)
	}
	return extras, nil
}

// Load reads the configuration and the default namespace, from one file if it is named. It
// follows kubectl's rules, but tells apart what clientcmd reports as "no configuration has been
// provided".
func Load(kubeconfig string, overrides *clientcmd.ConfigOverrides) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.WarnIfAllMissing = false // it is an error of ours, or in-cluster
	if kubeconfig != "" {
		rules.ExplicitPath = kubeconfig
		if _, err := os.Stat(kubeconfig); err != nil {
			return nil, "", fmt.Errorf("load the kubeconfig that ClientConfig.Kubeconfig or the flag --kubeconfig names: %w", err)
		}
	}
	raw, err := rules.Load()
	if err != nil {
		return nil, "", notLoaded(rules, err)
	}
	if err := checkContext(raw, overrides, rules); err != nil {
		return nil, "", err
	}
	deferred := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	cfg, err := deferred.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", noCluster(raw, rules)
	}
	if err != nil {
		return nil, "", fmt.Errorf("load kubeconfig from %s: %w", paths(rules), err)
	}
	namespace, _, err := deferred.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("load kubeconfig from %s: %w", paths(rules), err)
	}
	return cfg, namespace, nil
}

// notLoaded is the error of files that do not load. It names the field if a value is of a wrong
// form.
func notLoaded(rules *clientcmd.ClientConfigLoadingRules, err error) error {
	for _, file := range rules.GetLoadingPrecedence() {
		text, _ := os.ReadFile(file)
		if misfit := Misfit(text); misfit != "" {
			return fmt.Errorf("load kubeconfig from %s: %s", file, misfit)
		}
	}
	return fmt.Errorf("load kubeconfig: %w", err)
}

// Misfit says which value of a kubeconfig is of a wrong form, such as a token that is a
// number. It is empty if there is none, and quotes no value.
func Misfit(text []byte) string {
	var content any
	if yaml.Unmarshal(text, &content) != nil {
		return ""
	}
	misfit := asjson.MisfitOf(content, reflect.TypeFor[clientcmdv1.Config]())
	if misfit == nil {
		return ""
	}
	misfit.Path = mapKeys.ReplaceAllString(misfit.Path, "[…]")
	return misfit.Error() + misfit.Hint()
}

// mapKeys are what a path has of the text itself.
var mapKeys = regexp.MustCompile(`\["([^"\\]|\\.)*"\]`)

// checkContext is an error if the context asked for is not there, or its cluster, or its user.
func checkContext(raw *clientcmdapi.Config, overrides *clientcmd.ConfigOverrides, rules *clientcmd.ClientConfigLoadingRules) error {
	name := overrides.CurrentContext
	if name == "" {
		name = raw.CurrentContext
	}
	if name == "" {
		// If a file was named, the cluster that this process runs in is the wrong one.
		if rules.ExplicitPath != "" && overrides.Context.Cluster == "" && overrides.ClusterInfo.Server == "" {
			return fmt.Errorf("load kubeconfig from %s: it has no current context (choose one, %s)", paths(rules), contexts(raw))
		}
		return nil
	}
	context, ok := raw.Contexts[name]
	if !ok {
		return fmt.Errorf("load kubeconfig from %s: there is no context %q, %s", paths(rules), name, contexts(raw))
	}
	_, hasCluster := raw.Clusters[context.Cluster]
	_, hasUser := raw.AuthInfos[context.AuthInfo]
	switch given := overrides.AuthInfo; {
	case !hasCluster && overrides.Context.Cluster == "" && overrides.ClusterInfo.Server == "":
		return fmt.Errorf("load kubeconfig from %s: there is no cluster %q, which context %q names", paths(rules), context.Cluster, name)
	// client-go sends anonymous requests then.
	case !hasUser && context.AuthInfo != "" && overrides.Context.AuthInfo == "" && given.Token == "" && given.ClientCertificate == "":
		return fmt.Errorf("load kubeconfig from %s: there is no user %q, which context %q names", paths(rules), context.AuthInfo, name)
	}
	return nil
}

// noCluster says what a user who has no cluster can do about it.
func noCluster(raw *clientcmdapi.Config, rules *clientcmd.ClientConfigLoadingRules) error {
	if len(raw.Contexts) > 0 {
		return fmt.Errorf("no cluster configured: no current context in the kubeconfig at %s (choose one, %s), and not running in a cluster",
			paths(rules), contexts(raw))
	}
	return fmt.Errorf("no cluster configured: no kubeconfig at %s: set KUBECONFIG or name a file; and not running in a cluster", paths(rules))
}

// paths names the files that are read.
func paths(rules *clientcmd.ClientConfigLoadingRules) string {
	files := slices.DeleteFunc(rules.GetLoadingPrecedence(), func(path string) bool { return path == "" })
	for i, file := range files {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			files[i] += " (which does not exist)"
		}
	}
	return strings.Join(files, ", ")
}

// contexts names the contexts that could be chosen.
func contexts(raw *clientcmdapi.Config) string {
	if len(raw.Contexts) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
}

// RereadToken makes the client read a token from its file again as soon as the server refuses it.
// client-go alone does so once a minute.
func RereadToken(c *rest.Config) {
	if c.BearerTokenFile == "" {
		return
	}
	source := transport.NewCachedFileTokenSource(c.BearerTokenFile)
	if _, err := source.Token(); err != nil {
		return // client-go says so, or takes the token of the configuration
	}
	c.Wrap(transport.ResettableTokenSourceWrapTransport(source))
	c.BearerToken, c.BearerTokenFile = "", ""
}

// ServiceAccountFolder is where the kubelet puts the credentials of a pod.
const ServiceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// InPod reports whether the environment and the folder are those of a pod that has credentials for
// its cluster.
func InPod(getenv func(string) string, folder string) bool {
	if getenv("KUBERNETES_SERVICE_HOST") == "" || getenv("KUBERNETES_SERVICE_PORT") == "" {
		return false
	}
	token, err := os.Stat(filepath.Join(folder, "token"))
	return err == nil && !token.IsDir()
}
