package translate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/examples/gateway/nginx"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// keyPairs is the name of the node whose entries may be invalid: the Secrets that cannot be used.
const keyPairs = "key pairs"

// key is the namespace and name of an object.
type key = types.NamespacedName

// input is what a graph is made of.
type input struct {
	*Snapshot
	Options
	asked []string // the upstreams that Endpoints.Of is asked for
}

// graph says what is made of what. A function of it is a method of translation. It makes one part:
// what one object asks for, what one host has, the endpoints of one upstream. It runs again when
// something changes that it has looked up.
type graph struct {
	*derive.Graph[input]
	sources

	options  derive.Value[Options]
	now      derive.Value[time.Time]
	refusals derive.Collection[types.UID, refused]

	pairs derive.Collection[key, *keyPair]
	dates derive.Value[map[string]date]

	arrangement derive.Value[arrangement]
	holders     derive.Value[map[listener]holder]
	listeners   derive.Collection[key, []*gatewayListener]
	attached    derive.Index[key, key, *fragment]
	fragments   derive.Collection[derive.Nth[key], *fragment]

	owners  derive.Collection[place, owner]
	sites   derive.Collection[place, *site]
	full    derive.Collection[string, []place]
	crowded derive.Value[map[listener]bool]
	served  derive.Collection[place, *site]

	serverChanges      *derive.Changes[place, *site]
	upstreamChanges    *derive.Changes[string, endpointLists]
	certificateChanges *derive.Changes[key, certified]

	settings     derive.Value[nginx.Settings]
	servers      derive.Index[door, place, *site]
	upstreams    derive.Collection[string, endpointLists]
	leftOut      derive.Collection[string, []string] // addresses of this machine
	certificates derive.Collection[key, certified]
	wanted       [2]derive.Collection[key, struct{}]
	told         derive.Index[types.UID, derive.Nth[key], *fragment]
	toldAtHosts  derive.Index[types.UID, place, *site]
	reports      derive.Collection[derive.Nth[key], Report]
	secretNews   derive.Collection[key, Report]
}

// sources are what the snapshot has, as it is looked up.
type sources struct {
	services derive.Collection[key, *corev1.Service]
	slicesOf derive.Index[key, key, *discoveryv1.EndpointSlice]
	remoteOf derive.Index[key, remoteKey, fleet.Object[*discoveryv1.EndpointSlice]]

	classes        derive.Value[classes]
	ingresses      derive.Collection[key, *networkingv1.Ingress]
	gatewayClasses derive.Collection[key, *gatewayv1.GatewayClass]
	gateways       derive.Collection[key, *gatewayv1.Gateway]
	routes         derive.Collection[key, *gatewayv1.HTTPRoute]
	grants         derive.Index[string, key, *gatewayv1beta1.ReferenceGrant]
	namespaces     derive.Collection[key, *kates.PartialObjectMetadata]
	secrets        derive.Collection[key, *corev1.Secret]
	configMaps     derive.Collection[key, *corev1.ConfigMap]
}

// newGraph declares the graph of a configuration and its reports.
func newGraph(o ...derive.GraphOption) *graph {
	g := newEndpoints("configuration", o...)
	g.declareSources()
	g.declareObjects()
	g.declareHosts()
	g.declareResults()
	return g
}

// newEndpoints declares what endpoints are made of.
func newEndpoints(name string, o ...derive.GraphOption) *graph {
	g := &graph{Graph: derive.New[input](name, o...)}
	g.options = derive.Input(g.Graph, "options", func(in *input) Options { return in.Options.lasting() }, derive.Equal(sameOptions))
	g.services = derive.Objects(g.Graph, "Services", func(in *input) []*corev1.Service { return in.Services })
	here := derive.Objects(g.Graph, "EndpointSlices", func(in *input) []*discoveryv1.EndpointSlice { return in.Slices })
	away := derive.Slice(g.Graph, "EndpointSlices of other clusters", func(in *input) []fleet.Object[*discoveryv1.EndpointSlice] { return in.Remote }, remoteKeyOf)
	g.slicesOf = derive.GroupBy(here, "EndpointSlices by Service", func(_ key, s *discoveryv1.EndpointSlice) []key { return []key{serviceOf(s)} })
	g.remoteOf = derive.GroupBy(away, "EndpointSlices of other clusters by Service",
		func(_ remoteKey, s fleet.Object[*discoveryv1.EndpointSlice]) []key { return []key{serviceOf(s.Object)} })
	return g
}

// declareSources declares what else is watched.
func (g *graph) declareSources() {
	g.now = derive.Input(g.Graph, "now", func(in *input) time.Time { return in.Now })
	g.refusals = derive.Slice(g.Graph, "refusals", (*input).refused, func(r refused) types.UID { return r.uid })
	g.classes = derive.Input(g.Graph, "IngressClasses", func(in *input) classes { return in.Classes })
	g.ingresses = derive.Objects(g.Graph, "Ingress objects", func(in *input) []*networkingv1.Ingress { return in.Ingresses })
	g.gatewayClasses = derive.Objects(g.Graph, "GatewayClass objects", func(in *input) []*gatewayv1.GatewayClass { return in.GatewayClasses })
	g.gateways = derive.Objects(g.Graph, "Gateway objects", func(in *input) []*gatewayv1.Gateway { return in.Gateways })
	g.routes = derive.Objects(g.Graph, "HTTPRoute objects", func(in *input) []*gatewayv1.HTTPRoute { return in.Routes })
	grants := derive.Objects(g.Graph, "ReferenceGrants", func(in *input) []*gatewayv1beta1.ReferenceGrant { return in.Grants })
	g.grants = derive.GroupBy(grants, "ReferenceGrants by namespace", func(k key, _ *gatewayv1beta1.ReferenceGrant) []string { return []string{k.Namespace} })
	g.namespaces = derive.Objects(g.Graph, "Namespaces", func(in *input) []*kates.PartialObjectMetadata { return in.Namespaces })
	g.secrets = derive.Objects(g.Graph, "Secrets", func(in *input) []*corev1.Secret { return in.Secrets })
	g.configMaps = derive.Objects(g.Graph, "ConfigMaps", func(in *input) []*corev1.ConfigMap { return in.Settings })
}

// declareObjects declares what each object asks for.
func (g *graph) declareObjects() {
	g.pairs = derive.Map(g.secrets, keyPairs, each(g, (*translation).keyPair), derive.Equal(sameKeyPair))
	g.dates = derive.Compute(g, "dates", one(g, (*translation).datesOfPairs))

	settings := derive.Map(g.configMaps, "ConfigMaps read", each(g, (*translation).settingsMap))
	ingresses := derive.Map(g.ingresses, "Ingresses", each(g, (*translation).ingress))
	classes := derive.Map(g.gatewayClasses, "GatewayClasses", each(g, (*translation).gatewayClass))
	g.arrangement = derive.Compute(g, "arrangement", one(g, (*translation).arrange))
	g.holders = derive.Compute(g, "holders", one(g, (*translation).holdersOf))
	gateways := derive.Map(g.gateways, "Gateways", each(g, (*translation).gateway))
	g.listeners = derive.Map(gateways, "listeners", each(g, (*translation).listenersOf))
	routes := derive.Map(g.routes, "HTTPRoutes", each(g, (*translation).route))
	g.attached = derive.GroupBy(routes, "HTTPRoutes by Gateway", attachedTo)

	// In the order of the reports.
	g.fragments = derive.Union("fragments", settings, gateways, classes, routes, ingresses)
}

// declareHosts declares who has which host, and what is served there.
func (g *graph) declareHosts() {
	hosts := derive.GroupBy(g.fragments, "hosts", func(_ derive.Nth[key], f *fragment) []place { return f.places() })
	g.owners = derive.Map(hosts.Groups(), "owners", each(g, (*translation).ownerOf))
	g.sites = derive.Map(hosts.Groups(), "sites", each(g, (*translation).site))

	buckets := derive.GroupBy(g.sites, "buckets", func(at place, _ *site) []string { return at.buckets() })
	g.full = derive.Map(buckets.Groups(), "full buckets", each(g, (*translation).fullBucket))
	g.crowded = derive.Compute(g, "hosts without room", one(g, (*translation).hostsWithoutRoom))
	g.served = derive.Map(g.sites, "sites served", each(g, (*translation).withinBounds))
}

// declareResults declares the parts of a Desired.
func (g *graph) declareResults() {
	g.settings = derive.Compute(g, "settings", one(g, (*translation).allSettings))
	g.servers = derive.GroupBy(g.served, "servers by port", func(_ place, s *site) []door { return s.doors() })

	upstreams := derive.GroupBy(g.fragments, "upstreams", func(_ derive.Nth[key], f *fragment) []string { return f.backends })
	g.upstreams = derive.Map(upstreams.Keys(), "endpoints", each(g, (*translation).endpointLists))
	g.leftOut = derive.Map(g.upstreams, "endpoints left out", endpointsLeftOut)

	byObjects := derive.GroupBy(g.fragments, "Secrets by object", func(_ derive.Nth[key], f *fragment) []key { return f.certs })
	byHosts := derive.GroupBy(g.served, "Secrets by host", func(_ place, s *site) []key { return s.certs })
	g.wanted = [2]derive.Collection[key, struct{}]{byObjects.Keys(), byHosts.Keys()}
	g.certificates = derive.Map(g.secrets, "certificates", each(g, (*translation).certificateOf))

	g.serverChanges, g.upstreamChanges, g.certificateChanges = derive.ChangesOf(g.served), derive.ChangesOf(g.upstreams), derive.ChangesOf(g.certificates)

	g.told = derive.GroupBy(g.fragments, "told by objects", func(_ derive.Nth[key], f *fragment) []types.UID { return f.objects() })
	g.toldAtHosts = derive.GroupBy(g.served, "told by hosts", func(_ place, s *site) []types.UID { return s.objects() })
	g.reports = derive.Map(g.fragments, "reports", each(g, (*translation).reportOf))
	g.secretNews = derive.Map(g.secrets, "reports of Secrets", each(g, (*translation).secretReport))
}
