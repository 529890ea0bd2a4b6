package selectable

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// untyped reads JSON as a client does.
func untyped(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	head := `{"apiVersion":"v1","kind":"Thing"`
	if text != "{}" {
		head += ","
	}
	require.NoError(t, u.UnmarshalJSON([]byte(head+text[1:])), text)
	return u
}

func all(t *testing.T, f Fields, o runtime.Object) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, name := range f.Names() {
		v, ok := f.Value(o, name)
		require.True(t, ok, name)
		got[name] = v
	}
	return got
}

var (
	noEvent = map[string]string{
		"involvedObject.kind": "", "involvedObject.namespace": "", "involvedObject.name": "", "involvedObject.uid": "",
		"involvedObject.apiVersion": "", "involvedObject.resourceVersion": "", "involvedObject.fieldPath": "",
		"reason": "", "type": "", "source": "", "reportingComponent": "",
	}
	noGroupedEvent = map[string]string{
		"regarding.kind": "", "regarding.namespace": "", "regarding.name": "", "regarding.uid": "",
		"regarding.apiVersion": "", "regarding.resourceVersion": "", "regarding.fieldPath": "",
		"reason": "", "type": "", "reportingController": "",
	}
	noPod = map[string]string{
		"spec.nodeName": "", "spec.host": "", "spec.restartPolicy": "Always", "spec.schedulerName": "default-scheduler",
		"spec.serviceAccountName": "", "spec.hostNetwork": "false", "status.phase": "", "status.podIP": "", "status.podIPs": "",
		"status.nominatedNodeName": "",
	}
	noDevices = map[string]string{"spec.nodeName": "", "spec.driver": "", "spec.pool.name": ""}
	noRequest = map[string]string{"spec.signerName": "", "spec.podName": "", "spec.nodeName": ""}
)

// cases are, for each resource, objects and all of their fields: standard is what an empty object
// has.
var cases = []struct {
	resource schema.GroupVersionResource
	standard map[string]string
	objects  map[string]map[string]string // JSON: what differs from the standard
}{
	{in("", "v1", "pods"), noPod, map[string]map[string]string{
		`{"spec":{"nodeName":"n","restartPolicy":"Never","schedulerName":"s","serviceAccountName":"a","hostNetwork":true}}`: {
			"spec.nodeName": "n", "spec.host": "n", "spec.restartPolicy": "Never", "spec.schedulerName": "s",
			"spec.serviceAccountName": "a", "spec.hostNetwork": "true",
		},
		`{"spec":{"serviceAccount":"b","hostNetwork":false}}`:                       {"spec.serviceAccountName": "b"},
		`{"spec":{"serviceAccount":"b","serviceAccountName":"a"}}`:                  {"spec.serviceAccountName": "a"},
		`{"status":{"phase":"Running","nominatedNodeName":"m"}}`:                    {"status.phase": "Running", "status.nominatedNodeName": "m"},
		`{"status":{"podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}}`:                {"status.podIP": "10.0.0.1"},
		`{"status":{"podIP":"10.0.0.2","podIPs":[{"ip":"10.0.0.1"}]}}`:              {"status.podIP": "10.0.0.2"},
		`{"status":{"podIP":"10.0.0.2"}}`:                                           {"status.podIP": "10.0.0.2"},
		`{"status":{"podIPs":["odd"],"phase":7},"spec":"odd","hostNetwork":"true"}`: {},
	}},
	{in("", "v1", "events"), noEvent, map[string]map[string]string{
		`{"involvedObject":{"kind":"k","namespace":"n","name":"m","uid":"u","apiVersion":"a","resourceVersion":"1","fieldPath":"f"},"reason":"r","type":"t"}`: {
			"involvedObject.kind": "k", "involvedObject.namespace": "n", "involvedObject.name": "m", "involvedObject.uid": "u",
			"involvedObject.apiVersion": "a", "involvedObject.resourceVersion": "1", "involvedObject.fieldPath": "f", "reason": "r", "type": "t",
		},
		`{"source":{"component":"c"}}`:                          {"source": "c"},
		`{"reportingComponent":"d"}`:                            {"source": "d", "reportingComponent": "d"},
		`{"source":{"component":"c"},"reportingComponent":"d"}`: {"source": "c", "reportingComponent": "d"},
	}},
	{in("events.k8s.io", "v1", "events"), noGroupedEvent, map[string]map[string]string{
		`{"regarding":{"kind":"k","namespace":"n","name":"m","uid":"u","apiVersion":"a","resourceVersion":"1","fieldPath":"f"},"reason":"r","type":"t"}`: {
			"regarding.kind": "k", "regarding.namespace": "n", "regarding.name": "m", "regarding.uid": "u",
			"regarding.apiVersion": "a", "regarding.resourceVersion": "1", "regarding.fieldPath": "f", "reason": "r", "type": "t",
		},
		`{"deprecatedSource":{"component":"c"}}`: {},
		`{"reportingController":"d"}`:            {"reportingController": "d"},
	}},
	{in("", "v1", "namespaces"), map[string]string{"status.phase": "Active"}, map[string]map[string]string{
		`{"status":{"phase":"Terminating"}}`: {"status.phase": "Terminating"},
	}},
	{in("", "v1", "nodes"), map[string]string{"spec.unschedulable": "false"}, map[string]map[string]string{
		`{"spec":{"unschedulable":true}}`: {"spec.unschedulable": "true"},
	}},
	{in("", "v1", "replicationcontrollers"), map[string]string{"status.replicas": "0"}, map[string]map[string]string{
		`{"status":{"replicas":12}}`: {"status.replicas": "12"},
	}},
	{in("", "v1", "secrets"), map[string]string{"type": "Opaque"}, map[string]map[string]string{
		`{"type":"kubernetes.io/tls"}`: {"type": "kubernetes.io/tls"},
	}},
	{in("", "v1", "services"), map[string]string{"spec.clusterIP": "", "spec.type": "ClusterIP"}, map[string]map[string]string{
		`{"spec":{"clusterIP":"None"}}`:                       {"spec.clusterIP": "None"},
		`{"spec":{"type":"NodePort","clusterIP":"10.0.0.9"}}`: {"spec.type": "NodePort", "spec.clusterIP": "10.0.0.9"},
	}},
	{in("batch", "v1", "jobs"), map[string]string{"status.successful": "0"}, map[string]map[string]string{
		`{"status":{"succeeded":3}}`: {"status.successful": "3"},
	}},
	{in("certificates.k8s.io", "v1", "certificatesigningrequests"), map[string]string{"spec.signerName": ""}, signed},
	{in("certificates.k8s.io", "v1", "clustertrustbundles"), map[string]string{"spec.signerName": ""}, signed},
	{in("certificates.k8s.io", "v1alpha1", "clustertrustbundles"), map[string]string{"spec.signerName": ""}, signed},
	{in("certificates.k8s.io", "v1beta1", "clustertrustbundles"), map[string]string{"spec.signerName": ""}, signed},
	{in("certificates.k8s.io", "v1", "podcertificaterequests"), noRequest, requested},
	{in("certificates.k8s.io", "v1alpha1", "podcertificaterequests"), noRequest, requested},
	{in("certificates.k8s.io", "v1beta1", "podcertificaterequests"), noRequest, requested},
	{in("resource.k8s.io", "v1", "resourceslices"), noDevices, devices},
	{in("resource.k8s.io", "v1beta2", "resourceslices"), noDevices, devices},
	{in("resource.k8s.io", "v1beta1", "resourceslices"), noDevices, devices},
}

var (
	signed    = map[string]map[string]string{`{"spec":{"signerName":"s"}}`: {"spec.signerName": "s"}}
	requested = map[string]map[string]string{`{"spec":{"signerName":"s","podName":"p","nodeName":"n"}}`: {
		"spec.signerName": "s", "spec.podName": "p", "spec.nodeName": "n",
	}}
	devices = map[string]map[string]string{`{"spec":{"nodeName":"n","driver":"d","pool":{"name":"p"}}}`: {
		"spec.nodeName": "n", "spec.driver": "d", "spec.pool.name": "p",
	}}
)

func TestEachBuiltInFieldHasTheServersValueAndDefault(t *testing.T) {
	tested := map[schema.GroupVersionResource]bool{}
	for _, c := range cases {
		tested[c.resource] = true
		f := BuiltIn(c.resource)
		assert.Equal(t, c.standard, all(t, f, untyped(t, `{}`)), c.resource)
		changed := map[string]bool{}
		if has(f, "status.podIPs") {
			changed["status.podIPs"] = true // it never has a value
		}
		for object, differs := range c.objects {
			want := maps.Clone(c.standard)
			maps.Copy(want, differs)
			assert.Equal(t, want, all(t, f, untyped(t, object)), "%s %s", c.resource, object)
			if o, ok := typed(c.resource, object); ok {
				assert.Equal(t, want, all(t, f, o), "%s %s, typed", c.resource, object)
			}
			for field := range differs {
				changed[field] = true
			}
		}
		assert.Equal(t, f.Names(), slices.Sorted(maps.Keys(changed)), "every field of %s has a case", c.resource)
	}
	assert.Len(t, tested, len(BuiltIns()), "every resource has a case")
}

// typed is an object in its Go type; false if it has no such form.
func typed(r schema.GroupVersionResource, text string) (o runtime.Object, ok bool) {
	for kind := range scheme.Scheme.KnownTypes(r.GroupVersion()) {
		plural, _ := meta.UnsafeGuessKindToResource(r.GroupVersion().WithKind(kind))
		if plural == r {
			o, err := scheme.Scheme.New(r.GroupVersion().WithKind(kind))
			return o, err == nil && json.Unmarshal([]byte(text), o) == nil
		}
	}
	return nil, false
}

func BenchmarkAFieldOfATypedPod(b *testing.B) {
	pod := realistic.Pod(1)
	fields := BuiltIn(in("", "v1", "pods"))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := fields.Value(pod, "spec.nodeName"); !ok {
			b.Fatal("not judged")
		}
	}
}

func TestTypedObjectsHaveTheSameFields(t *testing.T) {
	pod := &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: "n", HostNetwork: true},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}},
	}
	want := maps.Clone(noPod)
	maps.Copy(want, map[string]string{
		"spec.nodeName": "n", "spec.host": "n", "spec.hostNetwork": "true", "status.phase": "Running", "status.podIP": "10.0.0.1",
	})
	assert.Equal(t, want, all(t, BuiltIn(in("", "v1", "pods")), pod))
	job := BuiltIn(in("batch", "v1", "jobs"))
	assert.Equal(t, map[string]string{"status.successful": "4"}, all(t, job, &batchv1.Job{Status: batchv1.JobStatus{Succeeded: 4}}))
	event := all(t, BuiltIn(in("events.k8s.io", "v1", "events")), &eventsv1.Event{Regarding: corev1.ObjectReference{Kind: "Pod"}})
	assert.Equal(t, "Pod", event["regarding.kind"])
}

func TestWhatCannotBeReadIsNotJudged(t *testing.T) {
	pods := BuiltIn(in("", "v1", "pods"))
	_, ok := pods.Value(&metav1.PartialObjectMetadata{}, "spec.nodeName")
	assert.False(t, ok, "an object without its spec")
	_, ok = pods.Value(&corev1.Pod{}, "spec.priority")
	assert.False(t, ok, "a field that is not selectable")
	_, ok = BuiltIn(in("", "v2", "pods")).Value(&corev1.Pod{}, "spec.nodeName")
	assert.False(t, ok, "a version that is not known")
	_, ok = BuiltIn(in("apps", "v1", "replicasets")).Value(untyped(t, `{"status":{"replicas":1}}`), "status.replicas")
	assert.False(t, ok, "the API refuses what the strategy computes")
	_, ok = Custom([]string{"", "a[*]", "a}{.b", ".."}).Value(untyped(t, `{}`), "a[*]")
	assert.False(t, ok, "what is no path of a field")
	assert.Empty(t, Custom([]string{"", "a[*]", "a}{.b"}))
}

func TestCustomFieldsAreFormattedAsTheServerDoes(t *testing.T) {
	f := Custom([]string{"spec.s", "spec.b", "spec.i", "spec.deep.er", "spec.with-dash", "kind"})
	for object, want := range map[string]map[string]string{
		`{}`: {},
		`{"spec":{"s":"x","b":true,"i":42,"deep":{"er":"y"},"with-dash":"z"}}`: {
			"spec.s": "x", "spec.b": "true", "spec.i": "42", "spec.deep.er": "y", "spec.with-dash": "z",
		},
		`{"spec":{"b":false,"i":0,"s":""}}`:                 {"spec.b": "false", "spec.i": "0"},
		`{"spec":{"b":null,"i":null,"deep":null}}`:          {},
		`{"spec":{"i":-9007199254740993}}`:                  {"spec.i": "-9007199254740993"},
		`{"spec":{"i":100000000000000000000,"deep":"odd"}}`: {"spec.i": "1e+20"},
		`{"spec":{"s":" a,b=c "}}`:                          {"spec.s": " a,b=c "},
	} {
		all := all(t, f, untyped(t, object))
		expected := map[string]string{"spec.s": "", "spec.b": "", "spec.i": "", "spec.deep.er": "", "spec.with-dash": "", "kind": "Thing"}
		maps.Copy(expected, want)
		assert.Equal(t, expected, all, object)
	}
}
