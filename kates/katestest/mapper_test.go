package katestest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates/katestest"
)

func newMapper(t *testing.T, kinds ...katestest.Kind) meta.RESTMapper {
	t.Helper()
	mapper, err := katestest.NewMapper(kinds...)
	require.NoError(t, err)
	return mapper
}

func TestNamesResolveAsKubectlResolvesThem(t *testing.T) {
	mapper := newMapper(t)
	for name, want := range map[string]string{
		// core
		"cm": "v1 configmaps ConfigMap", "ep": "v1 endpoints Endpoints", "endpoints": "v1 endpoints Endpoints",
		"ev": "v1 events Event", "events": "v1 events Event", "limits": "v1 limitranges LimitRange",
		"no": "v1 nodes Node", "ns": "v1 namespaces Namespace", "po": "v1 pods Pod", "pod": "v1 pods Pod",
		"pv": "v1 persistentvolumes PersistentVolume", "pvc": "v1 persistentvolumeclaims PersistentVolumeClaim",
		"quota": "v1 resourcequotas ResourceQuota", "rc": "v1 replicationcontrollers ReplicationController",
		"sa": "v1 serviceaccounts ServiceAccount", "secret": "v1 secrets Secret",
		"svc": "v1 services Service", "service": "v1 services Service", "services": "v1 services Service",
		"componentstatus": "v1 componentstatuses ComponentStatus",
		// groups
		"deploy": "apps/v1 deployments Deployment", "ds": "apps/v1 daemonsets DaemonSet", "rs": "apps/v1 replicasets ReplicaSet",
		"sts": "apps/v1 statefulsets StatefulSet", "controllerrevisions": "apps/v1 controllerrevisions ControllerRevision",
		"hpa": "autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler",
		"cj":  "batch/v1 cronjobs CronJob", "job": "batch/v1 jobs Job",
		"csr":            "certificates.k8s.io/v1 certificatesigningrequests CertificateSigningRequest",
		"lease":          "coordination.k8s.io/v1 leases Lease",
		"endpointslices": "discovery.k8s.io/v1 endpointslices EndpointSlice",
		"ing":            "networking.k8s.io/v1 ingresses Ingress", "ingress": "networking.k8s.io/v1 ingresses Ingress",
		"ingressclass": "networking.k8s.io/v1 ingressclasses IngressClass",
		"netpol":       "networking.k8s.io/v1 networkpolicies NetworkPolicy", "networkpolicies": "networking.k8s.io/v1 networkpolicies NetworkPolicy",
		"pdb":          "policy/v1 poddisruptionbudgets PodDisruptionBudget",
		"clusterroles": "rbac.authorization.k8s.io/v1 clusterroles ClusterRole",
		"pc":           "scheduling.k8s.io/v1 priorityclasses PriorityClass",
		"sc":           "storage.k8s.io/v1 storageclasses StorageClass",
		"crd":          "apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition",
		"apiservices":  "apiregistration.k8s.io/v1 apiservices APIService",
		"flowschemas":  "flowcontrol.apiserver.k8s.io/v1 flowschemas FlowSchema",
	} {
		for _, spelling := range []string{name, strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:]} {
			got, err := mapper.KindFor(schema.GroupVersionResource{Resource: spelling})
			require.NoError(t, err, spelling)
			mapping, err := mapper.RESTMapping(got.GroupKind(), got.Version)
			require.NoError(t, err, spelling)
			assert.Equal(t, want, got.GroupVersion().String()+" "+mapping.Resource.Resource+" "+got.Kind, spelling)

			resource, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: spelling})
			require.NoError(t, err, spelling)
			assert.Equal(t, mapping.Resource, resource, spelling)
		}
	}
}

func TestAGroupAndVersionThatWereNamedAreTaken(t *testing.T) {
	mapper := newMapper(t)
	for _, c := range []struct{ group, version, name, want string }{
		{"events.k8s.io", "", "events", "events.k8s.io/v1"},
		{"events.k8s.io", "", "ev", "events.k8s.io/v1"},
		{"autoscaling", "v1", "hpa", "autoscaling/v1"},
		{"apps", "v1beta1", "deploy", "apps/v1beta1"},
		{"extensions", "", "deployments", "extensions/v1beta1"},
		{"networking", "", "ing", "networking.k8s.io/v1"},
	} {
		got, err := mapper.KindFor(schema.GroupVersionResource{Group: c.group, Version: c.version, Resource: c.name})
		require.NoError(t, err, c)
		assert.Equal(t, c.want, got.GroupVersion().String(), c)
	}
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v7")
	assert.True(t, meta.IsNoMatchError(err), "a version that is not served is not replaced by another: %v", err)
	for group, want := range map[string]string{"apps": "v1", "extensions": "v1beta1"} {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: "Deployment"})
		require.NoError(t, err)
		assert.Equal(t, want, mapping.GroupVersionKind.Version)
	}
}

func TestCustomKindsJoinTheMapper(t *testing.T) {
	mapper := newMapper(t,
		katestest.Kind{APIVersion: "getambassador.io/v2", Kind: "Host"},
		katestest.Kind{APIVersion: "getambassador.io/v3alpha1", Kind: "Host"},
		katestest.Kind{APIVersion: "gateway.networking.k8s.io/v1", Kind: "Gateway", ShortNames: []string{"gtw"}},
		katestest.Kind{APIVersion: "serving.knative.dev/v1", Kind: "Service", Plural: "services", ShortNames: []string{"ksvc", "svc"}},
		katestest.Kind{APIVersion: "example.com/v1", Kind: "Kubernetes", Plural: "Kubernetii", ClusterScoped: true},
	)
	for name, want := range map[string]string{
		"hosts":      "getambassador.io/v2 hosts Host",
		"GTW":        "gateway.networking.k8s.io/v1 gateways Gateway",
		"gateways":   "gateway.networking.k8s.io/v1 gateways Gateway",
		"services":   "v1 services Service",
		"svc":        "v1 services Service",
		"ksvc":       "serving.knative.dev/v1 services Service",
		"kubernetii": "example.com/v1 kubernetii Kubernetes",
	} {
		gvk, err := mapper.KindFor(schema.GroupVersionResource{Resource: name})
		require.NoError(t, err, name)
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		require.NoError(t, err, name)
		assert.Equal(t, want, gvk.GroupVersion().String()+" "+mapping.Resource.Resource+" "+gvk.Kind, name)
		assert.Equal(t, name == "kubernetii", mapping.Scope.Name() == meta.RESTScopeNameRoot, name)
	}
	singular, err := mapper.ResourceSingularizer("GTW")
	require.NoError(t, err)
	assert.Equal(t, "gateway", singular)
}

func TestBadKindsAreErrorsThatNameThem(t *testing.T) {
	for _, c := range []struct {
		kinds []katestest.Kind
		want  string
	}{
		{[]katestest.Kind{{Kind: "Host"}}, "Host"},
		{[]katestest.Kind{{APIVersion: "a/b/c", Kind: "Host"}}, "a/b/c"},
		{[]katestest.Kind{{APIVersion: "example.com/v1"}}, "example.com/v1"},
		{[]katestest.Kind{{APIVersion: "example.com/v1", Kind: "A", Plural: "things"}, {APIVersion: "example.com/v1", Kind: "B", Plural: "things"}}, `kinds A and B of example.com/v1 are both served as "things"`},
	} {
		_, err := katestest.NewMapper(c.kinds...)
		require.Error(t, err)
		assert.Contains(t, err.Error(), c.want)
	}
}
