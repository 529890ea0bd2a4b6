package kinds

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A scheme knows Go types, but not how a server serves them. The lists below hold that part of
// the API reference (https://kubernetes.io/docs/reference/kubernetes-api/). A test compares them
// with a real server's discovery.

// The groups of the kinds that every API server has and client-go's scheme lacks.
const (
	DefinitionGroup = "apiextensions.k8s.io"
	APIServiceGroup = "apiregistration.k8s.io"
)

// Unschemed returns the kinds that every API server has and client-go's scheme lacks.
func Unschemed() []Served {
	return []Served{
		{GroupVersionKind: schema.GroupVersionKind{Group: DefinitionGroup, Version: "v1", Kind: "CustomResourceDefinition"},
			Plural: "customresourcedefinitions", ClusterScoped: true, ShortNames: []string{"crd", "crds"}},
		{GroupVersionKind: schema.GroupVersionKind{Group: APIServiceGroup, Version: "v1", Kind: "APIService"}, Plural: "apiservices", ClusterScoped: true},
	}
}

// OfScheme returns the kinds that an API with the types of a scheme serves, in no order. It leaves
// out the lists, options and subresources that are also in a scheme.
func OfScheme(scheme *runtime.Scheme) (all []Served) {
	object := reflect.TypeFor[metav1.Object]()
	for gvk, goType := range scheme.AllKnownTypes() {
		switch {
		case gvk.Version == runtime.APIVersionInternal,
			gvk.Group == metav1.GroupName,
			!reflect.PointerTo(goType).Implements(object),
			notResources[gvk.Kind] && !scheme.Recognizes(listOf(gvk)):
			continue
		}
		all = append(all, Served{
			GroupVersionKind: gvk, Plural: Plural(gvk), ClusterScoped: clusterScoped[gvk.GroupKind()], ShortNames: shortNames[gvk.GroupKind()],
		})
	}
	return all
}

func listOf(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	gvk.Kind += "List"
	return gvk
}

// Plural is client-go's guess of the resource of a kind, without its "gatewaies".
func Plural(gvk schema.GroupVersionKind) string {
	lower := strings.ToLower(gvk.Kind)
	if n := len(lower); n > 1 && lower[n-1] == 'y' && strings.ContainsRune("aeiou", rune(lower[n-2])) {
		return lower + "s"
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.Resource
}

// notResources are types with metadata that are no resources: bodies of subresources, webhooks
// and files.
var notResources = map[string]bool{
	"DeploymentRollback": true,
	"Eviction":           true,
	"ImageReview":        true,
	"PodStatusResult":    true,
	"RangeAllocation":    true,
	"Scale":              true,
	"TokenRequest":       true,
}

// clusterScoped are the built-in kinds without a namespace.
var clusterScoped = groupKinds(map[string][]string{
	"":                             {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"},
	"authentication.k8s.io":        {"SelfSubjectReview", "TokenReview"},
	"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
})

func groupKinds(kinds map[string][]string) map[schema.GroupKind]bool {
	set := map[schema.GroupKind]bool{}
	for group, names := range kinds {
		for _, name := range names {
			set[schema.GroupKind{Group: group, Kind: name}] = true
		}
	}
	return set
}

// shortNames are the short names of the built-in kinds in an API server's discovery.
var shortNames = map[schema.GroupKind][]string{
	{Kind: "ComponentStatus"}:       {"cs"},
	{Kind: "ConfigMap"}:             {"cm"},
	{Kind: "Endpoints"}:             {"ep"},
	{Kind: "Event"}:                 {"ev"},
	{Kind: "LimitRange"}:            {"limits"},
	{Kind: "Namespace"}:             {"ns"},
	{Kind: "Node"}:                  {"no"},
	{Kind: "PersistentVolume"}:      {"pv"},
	{Kind: "PersistentVolumeClaim"}: {"pvc"},
	{Kind: "Pod"}:                   {"po"},
	{Kind: "ReplicationController"}: {"rc"},
	{Kind: "ResourceQuota"}:         {"quota"},
	{Kind: "Service"}:               {"svc"},
	{Kind: "ServiceAccount"}:        {"sa"},

	{Group: "apps", Kind: "DaemonSet"}:   {"ds"},
	{Group: "apps", Kind: "Deployment"}:  {"deploy"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"rs"},
	{Group: "apps", Kind: "StatefulSet"}: {"sts"},

	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           {"hpa"},
	{Group: "batch", Kind: "CronJob"}:                                 {"cj"},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {"csr"},
	{Group: "events.k8s.io", Kind: "Event"}:                           {"ev"},
	{Group: "networking.k8s.io", Kind: "Ingress"}:                     {"ing"},
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                   {"ip"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:               {"netpol"},
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    {"pdb"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               {"pc"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                   {"sc"},
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:          {"vac"},
}
