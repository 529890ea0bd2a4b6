package katestest

import "k8s.io/apimachinery/pkg/runtime/schema"

// A scheme knows Go types, but not how a server serves them. The lists below hold that part of
// the API reference (https://kubernetes.io/docs/reference/kubernetes-api/). A test compares them
// with a real server's discovery.

const (
	crdGroup        = "apiextensions.k8s.io"
	apiServiceGroup = "apiregistration.k8s.io"
)

// served holds the kinds that every API server has and client-go's scheme lacks.
var served = []Kind{
	{APIVersion: crdGroup + "/v1", Kind: "CustomResourceDefinition", ClusterScoped: true, ShortNames: []string{"crd", "crds"}},
	{APIVersion: apiServiceGroup + "/v1", Kind: "APIService", ClusterScoped: true},
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
