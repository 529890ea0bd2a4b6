package rules

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

var served = kinds.BuiltIn(scheme.Scheme, slices.Concat(kinds.OfScheme(scheme.Scheme), kinds.Unschemed()))

// now is the time of the tests.
var now = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)

// kind is a built-in kind by its name and group, or the custom kind Widget.
func kind(t *testing.T, name string) *kinds.Kind {
	t.Helper()
	if name == "Widget" {
		return kinds.Free(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "widgets", true, nil)
	}
	for _, k := range served {
		if k.GroupKind().String() == name {
			return k
		}
	}
	require.Fail(t, "there is no kind "+name)
	return nil
}

// content is that of a text in YAML, of a stored object: it has a name, a namespace and a version.
func content(t *testing.T, k *kinds.Kind, text string) Content {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	c := Content{}
	require.NoError(t, utiljson.Unmarshal(raw, &c))
	o := object(c)
	if o.GetName() == "" && o.GetGenerateName() == "" {
		o.SetName("a")
	}
	if k.Namespaced {
		o.SetNamespace("default")
	}
	o.SetResourceVersion("7")
	return c
}

// created is a new object, which was stored.
func created(t *testing.T, k *kinds.Kind, text string) Content {
	t.Helper()
	c := content(t, k, text)
	require.NoError(t, Create(k, c, "uid-1", now))
	require.Empty(t, object(c).GetResourceVersion(), "the store gives it one")
	object(c).SetResourceVersion("7")
	return c
}

// has compares the fields at paths: "a.b=c" in YAML, "a.b" for a field that is not there.
func has(t *testing.T, c Content, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		path, text, there := strings.Cut(w, "=")
		is, found, err := unstructured.NestedFieldNoCopy(c, strings.Split(path, ".")...)
		require.NoError(t, err, w)
		require.Equal(t, there, found, "%s: %v", w, is)
		if there {
			raw, err := yaml.YAMLToJSON([]byte(text))
			require.NoError(t, err)
			var want any
			require.NoError(t, utiljson.Unmarshal(raw, &want))
			assert.Equal(t, want, is, w)
		}
	}
}

func TestANewObjectHasWhatTheServerSets(t *testing.T) {
	for _, c := range []struct {
		kind, sent string
		wanted     []string
	}{
		{"ConfigMap", "{metadata: {uid: mine, deletionTimestamp: '2020-01-01T00:00:00Z', deletionGracePeriodSeconds: 3}}", []string{
			"metadata.uid=uid-1", "metadata.creationTimestamp='2026-01-02T03:04:05Z'", "metadata.deletionTimestamp",
			"metadata.deletionGracePeriodSeconds", "metadata.generation"}},
		{"Deployment.apps", "{metadata: {generation: 9}, status: {replicas: 3}}", []string{"metadata.generation=1", "status={}"}},
		{"Widget", "{status: {ready: true}}", []string{"metadata.generation=1", "status"}},
		{"Node", "{status: {phase: Running}}", []string{"status.phase=Running"}},
		{"PersistentVolumeClaim", "{status: {phase: Bound}}", []string{"status={phase: Pending}"}},
		{"Namespace", "{spec: {finalizers: [example.com/f]}}", []string{
			"status.phase=Active", "spec.finalizers=[example.com/f, kubernetes]", "metadata.labels={kubernetes.io/metadata.name: a}"}},
		{"Namespace", "{spec: {finalizers: [kubernetes]}}", []string{"spec.finalizers=[kubernetes]"}},
		{"Service", "{spec: {type: ClusterIP}}", []string{"spec.ipFamilies=[IPv4]", "spec.ipFamilyPolicy=SingleStack"}},
		{"Pod", "{spec: {containers: []}}", []string{"status.phase=Pending", "status.qosClass=BestEffort", "spec.priority=0"}},
	} {
		has(t, created(t, kind(t, c.kind), c.sent), c.wanted...)
	}
}

func TestAGeneratedNameBeginsWithWhatWasAsked(t *testing.T) {
	for _, c := range []struct{ meta, prefix string }{
		{"generateName: job-", "job-"},
		{"generateName: " + strings.Repeat("n", 80), strings.Repeat("n", 58)},
	} {
		o := content(t, kind(t, "ConfigMap"), "{metadata: {"+c.meta+"}}")
		GenerateName(o)
		name := object(o).GetName()
		assert.Len(t, name, len(c.prefix)+5)
		assert.True(t, strings.HasPrefix(name, c.prefix), name)
	}
	o := content(t, kind(t, "ConfigMap"), "{metadata: {name: own, generateName: job-}}")
	GenerateName(o)
	assert.Equal(t, "own", object(o).GetName())
}

func TestTheQualityOfAPodFollowsFromItsResources(t *testing.T) {
	const whole = "{limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1, memory: 1Gi}}"
	for containers, want := range map[string]string{
		"[{}]":                                               "BestEffort",
		"[{resources: " + whole + "}]":                       "Guaranteed",
		"[{resources: " + whole + "}, {}]":                   "Burstable",
		"[{resources: {requests: {cpu: 1}}}]":                "Burstable",
		"[{resources: {limits: {memory: 1Gi, cpu: 1}}}]":     "Burstable", // defaults fill in the requests before this
		"[{resources: {requests: {example.com/device: 1}}}]": "BestEffort",
	} {
		has(t, created(t, kind(t, "Pod"), "{spec: {containers: "+containers+"}}"), "status.qosClass="+want)
	}
}

// TestTheGenerationRisesWithWhatAControllerActsOn checks the next generation after an update of an
// object whose generation is 1.
func TestTheGenerationRisesWithWhatAControllerActsOn(t *testing.T) {
	for _, c := range []struct {
		kind, by, old, next string
		want                int64
	}{
		{"Deployment.apps", "", "{spec: {replicas: 1}}", "{spec: {replicas: 1}}", 1},
		{"Deployment.apps", "", "{spec: {replicas: 1}}", "{spec: {replicas: 2}}", 2},
		{"Deployment.apps", "", "{spec: {replicas: 1}}", "{spec: {replicas: 1}, metadata: {labels: {a: b}}}", 1},
		{"Deployment.apps", "", "{spec: {replicas: 1}}", "{spec: {replicas: 1}, metadata: {annotations: {a: b}}}", 2},
		{"Deployment.apps", "status", "{}", "{spec: {replicas: 2}, status: {replicas: 1}}", 1},
		{"EndpointSlice.discovery.k8s.io", "", "{}", "{metadata: {labels: {a: b}}}", 2},
		{"Widget", "", "{spec: 1}", "{spec: 1, status: 2}", 1},
		{"Widget", "", "{spec: 1}", "{}", 2},
		{"Widget", "", "{spec: 1}", "{spec: 1, extra: {}}", 2},
	} {
		k := kind(t, c.kind)
		old, next := created(t, k, c.old), content(t, k, c.next)
		require.NoError(t, Update(k, c.by, old, next))
		assert.Equal(t, c.want, object(next).GetGeneration(), c)
	}
	k := kind(t, "ConfigMap")
	next := content(t, k, "{data: {k: v}}")
	require.NoError(t, Update(k, "", created(t, k, "{}"), next))
	assert.Zero(t, object(next).GetGeneration(), "config maps have none")
}

// TestAnUpdateKeepsWhatItsPathDoesNotWrite looks at what an update of an object, or of one of its
// subresources, has made.
func TestAnUpdateKeepsWhatItsPathDoesNotWrite(t *testing.T) {
	const meta = "labels: {l: old}, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: o, uid: u}]"
	for _, c := range []struct {
		kind, by, next string
		wanted         []string
	}{
		{"Deployment.apps", "", "{spec: {paused: true}, status: {replicas: 1}}", []string{"spec.paused=true", "status={}", "metadata.labels"}},
		{"Deployment.apps", "status", "{spec: {paused: true}, status: {replicas: 1}}", []string{"spec", "status={replicas: 1}", "metadata.labels={l: old}", "metadata.ownerReferences"}},
		{"Pod", "status", "{status: {phase: Running}}", []string{"status={phase: Running, qosClass: BestEffort}", "metadata.labels",
			"metadata.ownerReferences=[{apiVersion: v1, kind: ConfigMap, name: o, uid: u}]"}},
		{"Widget", "status", "{status: {n: 1}, spec: 5}", []string{"spec", "status={n: 1}", "metadata.labels={l: old}"}},
		{"Widget", "status", "{}", []string{"status"}},
		{"Namespace", "", "{spec: {finalizers: []}, status: {phase: Terminating}}", []string{"spec.finalizers=[kubernetes]", "status.phase=Active"}},
		{"Namespace", "finalize", "{spec: {finalizers: []}, status: {phase: Terminating}}", []string{"spec.finalizers=[]", "status.phase=Active"}},
		{"Service", "", "{spec: {type: ClusterIP}}", []string{"spec.ipFamilies=[IPv6]"}},
	} {
		k := kind(t, c.kind)
		old := created(t, k, "{metadata: {"+meta+"}}")
		if c.kind == "Service" {
			old["spec"] = map[string]any{"ipFamilies": []any{"IPv6"}}
		}
		next := content(t, k, c.next)
		require.NoError(t, Update(k, c.by, old, next), c)
		has(t, next, append(c.wanted, "metadata.uid=uid-1", "metadata.creationTimestamp='2026-01-02T03:04:05Z'")...)
	}
}

func TestATerminatingObjectStaysTerminating(t *testing.T) {
	k := kind(t, "ConfigMap")
	old := created(t, k, "{metadata: {finalizers: [example.com/f]}}")
	d, err := Delete(k, old, deleteOptions(""), now)
	require.NoError(t, err)
	next := content(t, k, "{metadata: {finalizers: [example.com/f], labels: {a: b}}}")
	require.NoError(t, Update(k, "", d.Next, next))
	has(t, next, "metadata.deletionTimestamp='2026-01-02T03:04:05Z'", "metadata.deletionGracePeriodSeconds=0", "metadata.labels={a: b}")
	assert.False(t, Ended(k, next))
	last := runtime.DeepCopyJSON(next)
	object(last).SetFinalizers(nil)
	require.NoError(t, Update(k, "", next, last))
	assert.True(t, Ended(k, last), "nothing keeps it")
}

func TestTwoReferencesToOneOwnerAreOne(t *testing.T) {
	k := kind(t, "ConfigMap")
	const one, other = "{apiVersion: v1, kind: ConfigMap, name: o, uid: u}", "{apiVersion: v1, kind: ConfigMap, name: p, uid: v}"
	c := content(t, k, "{metadata: {ownerReferences: ["+one+","+other+","+one+","+one+"]}}")
	assert.Contains(t, OneReferenceEach(c, " somewhere"), "duplicate entries somewhere; API server dedups owner references in 1.20+, "+
		"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u")
	has(t, c, "metadata.ownerReferences=["+one+","+other+"]")
	assert.Empty(t, OneReferenceEach(c, " somewhere"))
}

func TestAFinalizerWithoutADomainIsWarnedOfOnce(t *testing.T) {
	k := kind(t, "Widget")
	c := content(t, k, "{metadata: {finalizers: [mine, example.com/f, foregroundDeletion]}}")
	assert.Equal(t, []string{`metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`}, Warnings(k, nil, c))
	assert.Empty(t, Warnings(k, c, c), "it had it before")
	assert.Empty(t, Warnings(kind(t, "ConfigMap"), nil, c), "a built-in kind has an error instead")
}

// splitWanted are the wanted fields of a line.
func splitWanted(line string) []string { return strings.Fields(line) }
