package source

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/kates"
)

// FluxOptions configure [Flux].
type FluxOptions struct {
	// Namespaces of the Kustomizations and HelmReleases. Default: all.
	Namespaces []string
	// Allow says what the configurations may do on this machine. Default: nothing. Flux itself
	// allows the same, but for what its --insecure-kubeconfig-exec and --insecure-kubeconfig-tls
	// do.
	Allow Allow
	// Hosts are the host names, addresses and networks (CIDR) that the configurations may lead to,
	// and their proxies. *.example.com stands for all names below example.com. If there are any,
	// nothing else is allowed. Default: all but loopback, link-local, unspecified, multicast and
	// broadcast addresses, and those of cloud metadata. Such an address is allowed only by an entry
	// for itself, or for a network of nothing else: 127.0.0.0/8, ::1. See the package documentation.
	Hosts []string
	// Providers log in where spec.kubeConfig names a ConfigMap, by the provider's name in it: aws,
	// azure, gcp or generic. [ServiceAccountTokens] is one for generic. Without one such a cluster
	// is an error. A provider returns at once, with a configuration whose transport logs in: see
	// rest.Config.WrapTransport. It is called again when something has changed. Hosts hold for it,
	// too, unless it brings a Dial or a Transport of its own.
	Providers map[string]func(FluxCluster) (*rest.Config, error)
}

// FluxCluster is what a ConfigMap says that spec.kubeConfig.configMapRef names. See
// https://fluxcd.io/flux/components/kustomize/kustomizations/#kubeconfig-remote-clusters
type FluxCluster struct {
	// Namespace and Name of the ConfigMap.
	Namespace, Name string
	// Provider is aws, azure, gcp or generic.
	Provider string
	// Cluster is the cluster's name for the provider.
	Cluster string
	// Address of the API server, and the certificate of its authority (ca.crt).
	Address, CA string
	// Audiences of the token.
	Audiences []string
	// ServiceAccountName is the service account in the namespace that stands for the client.
	ServiceAccountName string
}

// Flux is a source of the clusters that Flux deploys to: those that spec.kubeConfig of
// Kustomizations (kustomize.toolkit.fluxcd.io) and HelmReleases (helm.toolkit.fluxcd.io) names. It
// names a Secret in the object's namespace, with a kubeconfig under a key (default: value, or else
// value.yaml), or a ConfigMap that says by which provider to log in. Either kind may be missing in
// the home cluster: the source notices when it is installed.
//
// A cluster's name is "namespace/name" of the Secret or the ConfigMap, followed by "/key" if the
// key is another one than the default. Of a Secret and a ConfigMap of one name the one that has
// the name keeps it; at first it is the Secret's.
// The cluster's labels are those of the Secret or the ConfigMap. What Flux impersonates there
// (spec.serviceAccountName) is not part of the configuration.
//
// The needed rights are list and watch of both kinds, in the given namespaces or in all, as far as
// they are installed, and list and watch of the Secrets and ConfigMaps that are named. No others
// are watched.
func Flux(client *kates.Client, options FluxOptions) fleet.Source {
	if client == nil {
		return broken{"Flux", errNoHome}
	}
	f := &flux{FluxOptions: options}
	var err error
	if f.terms, err = newTerms(options.Allow, options.Hosts); err != nil {
		return broken{"Flux", err}
	}
	refs := func(kind string) (all []kates.Ref) {
		names := func(o *kates.Unstructured) []types.NamespacedName { return refOf(o).named(kind) }
		for _, field := range []string{"Kustomizations", "HelmReleases"} {
			all = append(all, kates.RefsOf(field, names))
		}
		return all
	}
	return &home[fluxSnapshot]{
		name: "Flux", client: client, members: f.members,
		queries: []kates.Query{
			narrow(kates.Query{Name: "Kustomizations", Transform: stripFlux}, options.Namespaces),
			narrow(kates.Query{Name: "HelmReleases", Transform: stripFlux}, options.Namespaces),
			{Name: "Secrets", Refs: refs("Secret"), Transform: stripNamed},
			{Name: "ConfigMaps", Refs: refs("ConfigMap")},
		},
		optional: func(s *fluxSnapshot) map[string]bool {
			return map[string]bool{"Kustomizations": s.Kustomizations == nil, "HelmReleases": s.HelmReleases == nil}
		},
	}
}

type fluxSnapshot struct {
	Kustomizations []*kates.Unstructured `kates:"kustomizations.kustomize.toolkit.fluxcd.io,optional"`
	HelmReleases   []*kates.Unstructured `kates:"helmreleases.helm.toolkit.fluxcd.io,optional"`
	Secrets        map[types.NamespacedName]*kates.Secret
	ConfigMaps     map[types.NamespacedName]*kates.ConfigMap
}

type flux struct {
	FluxOptions
	names names
	terms terms
}

// fluxRef is what an object's spec.kubeConfig names. It is empty if there is none.
type fluxRef struct {
	kind string // Secret or ConfigMap
	types.NamespacedName
	key string // "" is the default
}

// refOf returns what an object names.
func refOf(o *kates.Unstructured) fluxRef {
	r := fluxRef{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace()}}
	get := func(path ...string) string {
		text, _, _ := unstructured.NestedString(o.Object, append([]string{"spec", "kubeConfig"}, path...)...)
		return text // "" if it is no text: the kind's schema has a say in that
	}
	if r.Name = get("secretRef", "name"); r.Name != "" {
		r.kind, r.key = "Secret", get("secretRef", "key")
		if r.key == fluxKeys[0] {
			r.key = ""
		}
	} else if r.Name = get("configMapRef", "name"); r.Name != "" {
		r.kind = "ConfigMap"
	}
	return r
}

// fluxKeys are the default keys of a kubeconfig, in order.
var fluxKeys = []string{"value", "value.yaml"}

// named returns what is named, if it is of a kind.
func (r fluxRef) named(kind string) []types.NamespacedName {
	if r.kind != kind {
		return nil
	}
	return []types.NamespacedName{r.NamespacedName}
}

// cluster is the name of the cluster in the fleet.
func (r fluxRef) cluster() string {
	name := r.Namespace + "/" + r.Name
	if r.key != "" {
		name += "/" + r.key
	}
	return name
}

func (r fluxRef) compare(other fluxRef) int {
	return cmp.Or(-cmp.Compare(r.kind, other.kind), // a Secret is first
		cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name), cmp.Compare(r.key, other.key))
}

// stripFlux keeps of an object what names a cluster.
var stripFlux = kates.TransformOf(stripFluxObject)

func stripFluxObject(o *kates.Unstructured) error {
	config, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "kubeConfig")
	maps.DeleteFunc(o.Object, func(field string, _ any) bool {
		return !slices.Contains([]string{"apiVersion", "kind", "metadata"}, field)
	})
	o.SetManagedFields(nil)
	o.SetAnnotations(nil)
	if found {
		o.Object["spec"] = map[string]any{"kubeConfig": config}
	}
	return nil
}

// stripNamed keeps all data of a Secret: others say which key has the kubeconfig.
var stripNamed = kates.TransformOf(func(s *kates.Secret) error {
	stripSecret(s, func(string) bool { return true })
	return nil
})

func (f *flux) members(snap *fluxSnapshot) []fleet.Member {
	refs := make(map[fluxRef]bool)
	for _, o := range slices.Concat(snap.Kustomizations, snap.HelmReleases) {
		if r := refOf(o); r.kind != "" {
			refs[r] = true
		}
	}
	var claims []claim
	for _, r := range slices.SortedFunc(maps.Keys(refs), fluxRef.compare) {
		where := r.kind + " " + r.Namespace + "/" + r.Name
		m := f.member(r, snap)
		m.Name = r.cluster()
		if m.Err != nil {
			m.Err = fmt.Errorf("%s: %w", where, m.Err)
		}
		claims = append(claims, claim{where, m})
	}
	return f.names.settle(claims)
}

var errNotThere = errors.New("it does not exist, and objects of Flux name it")

func (f *flux) member(r fluxRef, snap *fluxSnapshot) fleet.Member {
	if r.kind == "ConfigMap" {
		if c := snap.ConfigMaps[r.NamespacedName]; c != nil {
			return f.login(c)
		}
		return fleet.Member{Err: errNotThere}
	}
	secret := snap.Secrets[r.NamespacedName]
	if secret == nil {
		return fleet.Member{Err: errNotThere}
	}
	if r.key == "" {
		r.key = fluxKeys[0]
		if _, ok := secret.Data[r.key]; !ok {
			r.key = fluxKeys[1]
		}
		if _, ok := secret.Data[r.key]; !ok {
			return fleet.Member{Labels: maps.Clone(secret.Labels), Err: fmt.Errorf("it has no data under any of %q", fluxKeys)}
		}
	}
	return kubeconfigMember(secret, r.key, f.terms)
}

// login makes a member of a ConfigMap that says how to log in.
func (f *flux) login(c *kates.ConfigMap) fleet.Member {
	m := fleet.Member{Labels: maps.Clone(c.Labels)}
	to := FluxCluster{
		Namespace: c.Namespace, Name: c.Name, Provider: c.Data["provider"], Cluster: c.Data["cluster"], Address: c.Data["address"],
		CA: c.Data["ca.crt"], ServiceAccountName: c.Data["serviceAccountName"],
	}
	if err := yaml.Unmarshal([]byte(c.Data["audiences"]), &to.Audiences); err != nil {
		m.Err = errors.New("its audiences are no list in YAML")
		return m
	}
	provider := f.Providers[to.Provider]
	if provider == nil {
		m.Err = fmt.Errorf("it needs a login by the provider %q, for which the program has no function in FluxOptions.Providers", to.Provider)
		return m
	}
	m.Err = guard.Named("the provider "+to.Provider+" panicked", func() (err error) {
		m.Config, err = provider(to)
		return err
	})
	if m.Err == nil && m.Config == nil {
		m.Err = fmt.Errorf("the provider %q has returned nothing", to.Provider)
	}
	if m.Err == nil {
		m.Config = rest.CopyConfig(m.Config)
		m.Err = f.terms.guard(m.Config)
	}
	if m.Err != nil {
		m.Config = nil
	}
	var texts [][]byte
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		texts = append(texts, []byte(key), []byte(c.Data[key]))
	}
	m.Version = hash(texts...)
	return m
}
