package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// ProfileOptions configure [ClusterProfiles].
type ProfileOptions struct {
	// Namespaces of the ClusterProfiles. Default: all.
	Namespaces []string
	// LabelSelector narrows them: x-k8s.io/cluster-manager=NAME are those of one cluster manager.
	LabelSelector string
	// Providers are the ways to get credentials that the program has. Of those that a profile
	// names, the first one here counts.
	Providers []AccessProvider
	// Allow says what profiles may do on this machine, besides having the program of an
	// [AccessProvider] run. Default: nothing.
	Allow Allow
	// Hosts are the host names, addresses and networks (CIDR) that the configurations may lead to,
	// and their proxies. *.example.com stands for all names below example.com. If there are any,
	// nothing else is allowed. Default: all but loopback, link-local, unspecified, multicast and
	// broadcast addresses, and those of cloud metadata. Such an address is allowed only by an entry
	// for itself, or for a network of nothing else: 127.0.0.0/8, ::1. See the package documentation.
	Hosts []string
}

// AccessProvider gets credentials for clusters by a program, as KEP-5339 describes: the profile
// has the server and its authority, and the program running here says by which plugin to log in.
// See
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/5339-clusterprofile-plugin-credentials
type AccessProvider struct {
	// Name of the provider in the status of profiles.
	Name string
	// Exec is the plugin to run. See
	// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
	// A plugin that has to know the cluster needs ProvideClusterInfo.
	Exec clientcmdapi.ExecConfig
	// Args: the arguments that a profile has for the plugin are appended to those of Exec. By
	// default they are ignored.
	Args bool
	// Env says what becomes of the environment variables that a profile has for the plugin. By
	// default they are ignored. A profile with a variable that decides which code the plugin runs,
	// which files it trusts, or where its requests go, is refused: PATH, LD_PRELOAD, HTTPS_PROXY
	// and the like. See [EnvPolicy].
	Env EnvPolicy
}

// EnvPolicy says what becomes of the environment variables of a ClusterProfile. Where they are not
// ignored, these are refused, in upper and lower case, together with the profile:
//
//   - what is no name: letters, digits and underscores alone make one;
//   - what chooses code for loaders, shells and interpreters: LD_*, DYLD_*, BASH_*, ENV, IFS,
//     SHELLOPTS, PYTHON*, PERL*, RUBY*, NODE_*, JAVA_*, JDK_*, _JAVA_OPTIONS, DOTNET_*, GODEBUG,
//     GIT_*, SSH_*, OPENSSL_*, GCONV_*, GLIBC_TUNABLES, CLOUDSDK_PYTHON*, LESS* and the like, and
//     every name that has PRELOAD, EXECUTABLE, ASKPASS, PAGER, EDITOR, BROWSER or _COMMAND in it,
//     or ends in _OPTIONS or _OPTS;
//   - what chooses the plugin's files: XDG_*, KUBECONFIG, KRB5*, TERMINFO*, INPUTRC, NETRC and the
//     like, and every name that has FILE (but for PROFILE), PATH, HOME, _DIR or CREDENTIAL in it,
//     or ends in DIR or _CONFIG;
//   - what chooses where it connects to and whom it trusts: AWS_CONTAINER_*, SOCKS_*, HOSTALIASES,
//     RES_OPTIONS, LOCALDOMAIN, and every name that has PROXY, ENDPOINT, METADATA, UNIVERSE, _URI,
//     _URL, _ADDR, _HOST, SSL, TLS, CERT, BUNDLE, VERIF, VALIDAT or INSECURE in it, or ends in URI
//     or URL;
//   - what client-go and clusters set: KUBERNETES_*.
//
// No list knows what a plugin makes of its own variables. So a policy other than EnvIgnore is for
// plugins whose variables may be set by whoever may write a profile's status.
type EnvPolicy string

// The policies, by the names that KEP-5339 has for them.
const (
	EnvIgnore            EnvPolicy = ""
	EnvAppendIfNotExists EnvPolicy = "AppendIfNotExists" // those of Exec win
	EnvReplace           EnvPolicy = "Replace"           // those of the profile win
)

// The extensions of a cluster that KEP-5339 defines.
const (
	profileArgs = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
	profileEnv  = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
)

// ClusterProfiles is a source of the ClusterProfiles of a home cluster (multicluster.x-k8s.io,
// KEP-4322), in whatever version it serves. Each is a cluster, with the name "namespace/name" and
// the profile's labels. Its status.accessProviders (formerly credentialProviders) say how to reach
// it. If the kind is not installed there are no clusters, until it is.
//
// The needed rights are list and watch of ClusterProfiles, in the given namespaces or in all.
func ClusterProfiles(client *kates.Client, options ProfileOptions) fleet.Source {
	const name = "ClusterProfiles"
	if client == nil {
		return broken{name, errNoHome}
	}
	for _, p := range options.Providers {
		if p.Name == "" || p.Exec.Command == "" || p.Exec.APIVersion == "" {
			return broken{name, fmt.Errorf("access provider %q lacks its name, or the command or apiVersion of its plugin", p.Name)}
		}
		if !slices.Contains([]EnvPolicy{EnvIgnore, EnvAppendIfNotExists, EnvReplace}, p.Env) {
			return broken{name, fmt.Errorf("access provider %q: there is no policy %q", p.Name, p.Env)}
		}
	}
	p := &profiles{ProfileOptions: options}
	var err error
	if p.terms, err = newTerms(options.Allow, options.Hosts); err != nil {
		return broken{name, err}
	}
	return &home[profileSnapshot]{
		name: name, client: client, members: p.members,
		queries:  []kates.Query{narrow(kates.Query{Name: "Profiles", LabelSelector: options.LabelSelector}, options.Namespaces)},
		optional: func(s *profileSnapshot) map[string]bool { return map[string]bool{"Profiles": s.Profiles == nil} },
	}
}

type profileSnapshot struct {
	Profiles []*kates.Unstructured `kates:"clusterprofiles.multicluster.x-k8s.io,optional"`
}

type profiles struct {
	ProfileOptions
	names names
	terms terms
}

func (p *profiles) members(snap *profileSnapshot) []fleet.Member {
	var claims []claim
	for _, o := range byAge(snap.Profiles) {
		if !live(o) {
			continue
		}
		name := o.GetNamespace() + "/" + o.GetName()
		m := fleet.Member{Name: name, Labels: o.GetLabels()}
		c, err := p.connect(o)
		if err != nil {
			m.Err = fmt.Errorf("ClusterProfile %s: %w", name, err)
		} else {
			m.Config, m.Version = c.config, c.version
		}
		claims = append(claims, claim{"ClusterProfile " + name, m})
	}
	return p.names.settle(claims)
}

// connect returns how the cluster of a profile is reached.
func (p *profiles) connect(o *kates.Unstructured) (connection, error) {
	offered := make(map[string]any)
	for _, field := range []string{"credentialProviders", "accessProviders"} { // the later one wins
		list, _, _ := unstructured.NestedSlice(o.Object, "status", field)
		for _, item := range list {
			if item, ok := item.(map[string]any); ok {
				name, _, _ := unstructured.NestedString(item, "name")
				offered[name] = item["cluster"]
			}
		}
	}
	for _, provider := range p.Providers {
		if content, ok := offered[provider.Name]; ok {
			return provider.connect(content, p.terms)
		}
	}
	if len(offered) == 0 {
		return connection{}, errors.New("its status has no access provider")
	}
	return connection{}, fmt.Errorf("none of its access providers (%s) is among those in ProfileOptions.Providers",
		strings.Join(slices.Sorted(maps.Keys(offered)), ", "))
}

// connect returns how the cluster is reached that a profile describes.
func (p AccessProvider) connect(content any, terms terms) (connection, error) {
	cluster, extensions, err := clusterOf(content)
	if err != nil {
		return connection{}, err
	}
	exec := p.Exec.DeepCopy()
	exec.InteractiveMode = clientcmdapi.NeverExecInteractiveMode
	if p.Args {
		var args []string
		if text := extensions[profileArgs]; text != nil && json.Unmarshal(text, &args) != nil {
			return connection{}, fmt.Errorf("its extension %s is no list of texts", profileArgs)
		}
		exec.Args = append(exec.Args, args...)
	}
	if p.Env != EnvIgnore {
		var env map[string]string
		if text := extensions[profileEnv]; text != nil && json.Unmarshal(text, &env) != nil {
			return connection{}, fmt.Errorf("its extension %s is no map of texts", profileEnv)
		}
		if err := checkEnv(env); err != nil {
			return connection{}, err
		}
		exec.Env = p.env(exec.Env, env)
	}
	user := clientcmdapi.NewAuthInfo()
	user.Exec = exec
	terms.Allow |= AllowExec // the plugin is this program's own
	return connect(cluster, user, terms)
}

// env returns the plugin's own variables together with those of a profile.
func (p AccessProvider) env(own []clientcmdapi.ExecEnvVar, profile map[string]string) []clientcmdapi.ExecEnvVar {
	all := make(map[string]string)
	for _, v := range own {
		all[v.Name] = v.Value
	}
	for name, value := range profile {
		if _, ok := all[name]; !ok || p.Env == EnvReplace {
			all[name] = value
		}
	}
	var list []clientcmdapi.ExecEnvVar
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, clientcmdapi.ExecEnvVar{Name: name, Value: all[name]})
	}
	return list
}

// clusterOf returns the cluster of a profile's access provider, and its extensions.
func clusterOf(content any) (*clientcmdapi.Cluster, map[string][]byte, error) {
	var v1 clientcmdv1.Cluster
	text, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(text, &v1)
	}
	if err != nil { // which may quote the profile
		return nil, nil, errors.New("its access provider has no cluster that can be read")
	}
	extensions := make(map[string][]byte)
	for _, e := range v1.Extensions {
		extensions[e.Name] = e.Extension.Raw
	}
	cluster := clientcmdapi.NewCluster()
	if err := clientcmdlatest.Scheme.Convert(&v1, cluster, nil); err != nil {
		return nil, nil, errors.New("its access provider has a cluster that cannot be converted")
	}
	return cluster, extensions, nil
}
