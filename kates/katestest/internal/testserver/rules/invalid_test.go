package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestWhatIsWrongWithANewObjectIsSaid has what a real server's message says.
func TestWhatIsWrongWithANewObjectIsSaid(t *testing.T) {
	owners := func(all ...string) string { return "{metadata: {ownerReferences: [" + strings.Join(all, ",") + "]}}" }
	const controls = "{apiVersion: v1, kind: ConfigMap, name: %, uid: %, controller: true}"
	for _, c := range []struct{ kind, sent, want string }{
		{"ConfigMap", "{metadata: {name: B}}", `metadata.name: Invalid value: "B": a lowercase RFC 1123 subdomain`},
		{"Service", "{metadata: {name: 1a}}", `metadata.name: Invalid value: "1a": a DNS-1035 label`},
		{"Namespace", "{metadata: {name: a.b}}", `metadata.name: Invalid value: "a.b": must not contain dots`},
		{"ClusterRole.rbac.authorization.k8s.io", "{metadata: {name: 'a/b'}}", `metadata.name: Invalid value: "a/b": may not contain '/'`},
		{"ConfigMap", "{metadata: {labels: {'-': x}}}", "metadata.labels: Invalid value"},
		{"ConfigMap", "{metadata: {finalizers: [mine]}}", "name is neither a standard finalizer name nor is it fully qualified"},
		{"ConfigMap", owners("{apiVersion: '', kind: '', name: o, uid: u}"), `[metadata.ownerReferences[0].apiVersion: Required value: must not be empty, metadata.ownerReferences[0].kind: Required value: must not be empty]`},
		{"ConfigMap", owners("{apiVersion: v1, kind: Event, name: o, uid: u}"), "/v1, Kind=Event is disallowed from being an owner"},
		{"ConfigMap", owners(strings.ReplaceAll(controls, "%", "a"), strings.ReplaceAll(controls, "%", "b")),
			`Only one reference can have Controller set to true. Found "true" in references for ConfigMap/a and ConfigMap/b`},
		{"ConfigMap", "{data: {'a b': x}}", "data[a b]: Invalid value"},
		{"ConfigMap", "{binaryData: {'a b': eA==}}", "binaryData[a b]: Invalid value"},
		{"ConfigMap", "{data: {a: x}, binaryData: {a: eA==}}", "data[a]: Invalid value: \"a\": duplicate of key present in binaryData"},
		{"ConfigMap", "{data: {a: " + strings.Repeat("x", 1<<20+1) + "}}", "data: Too long: may not be more than 1048576 bytes"},
		{"Secret", "{data: {a: " + strings.Repeat("QUFB", 1<<18) + "}}", ""}, // three bytes for four
		{"Secret", "{data: {a: " + strings.Repeat("QUFB", 1<<19) + "}}", "data: Too long: may not be more than 1048576 bytes"},
		{"Deployment.apps", "{spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}}}}", "`selector` does not match template `labels`: a=b"},
		{"Deployment.apps", "{spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, c: d}}}}}", ""},
		{"Deployment.apps", "{spec: {selector: {matchExpressions: [{key: a, operator: Nearby}]}}}", "spec.selector: Invalid value"},
		{"Deployment.apps", "{spec: {selector: {matchLabels: 5}}}", "spec.selector: Invalid value"},
	} {
		k := kind(t, c.kind)
		says(t, Create(k, content(t, k, c.sent), "uid-1", now), c.want)
	}
}

// says checks that an object is invalid for a reason, "" for none.
func says(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.Error(t, err, want)
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, want)
}

func TestWhatMayNotChangeIsSaid(t *testing.T) {
	const pod = "{spec: {containers: [{name: c, image: a}], activeDeadlineSeconds: 9, tolerations: [{key: t}]}}"
	with := func(old, new string) string { return strings.Replace(pod, old, new, 1) }
	const elsewhere = "pod updates may not change fields other than images, activeDeadlineSeconds, and tolerations that are added"
	for _, c := range []struct{ kind, by, old, next, want string }{
		{"ConfigMap", "", "{immutable: true, data: {a: b}}", "{immutable: true, data: {a: b}, metadata: {labels: {a: b}}}", ""},
		{"ConfigMap", "", "{immutable: true, data: {a: b}}", "{immutable: true, data: {a: c}}", "data: Forbidden: field is immutable when `immutable` is set"},
		{"ConfigMap", "", "{immutable: true}", "{}", "immutable: Forbidden: field is immutable when `immutable` is set"},
		{"ConfigMap", "", "{data: {a: b}}", "{data: {a: c}, immutable: true}", ""},
		{"Secret", "", "{type: Opaque}", "{type: other}", `type: Invalid value: "other": field is immutable`},
		{"Deployment.apps", "", "{spec: {selector: {}}}", "{spec: {selector: {matchLabels: {}}}}", "spec.selector: Invalid value"},
		{"Namespace", "status", "{}", "{status: {phase: Terminating}}", `status.Phase: Invalid value: "Terminating": may only be Active now`},
		{"Pod", "", pod, with("image: a", "image: b"), ""},
		{"Pod", "", pod, with("activeDeadlineSeconds: 9", "activeDeadlineSeconds: 8"), ""},
		{"Pod", "", pod, with("activeDeadlineSeconds: 9", "activeDeadlineSeconds: 10"), "spec.activeDeadlineSeconds: Invalid value: 10: must be less than or equal to previous value"},
		{"Pod", "", pod, with("activeDeadlineSeconds: 9, ", ""), "spec.activeDeadlineSeconds: Invalid value"},
		{"Pod", "", pod, with("{key: t}", "{key: t}, {key: u}"), ""},
		{"Pod", "", pod, with("{key: t}", "{key: u}"), elsewhere},
		{"Pod", "", pod, with("name: c", "name: d"), elsewhere},
		{"Pod", "", pod, with("{name: c, image: a}", "{name: c, image: a}, {name: d}"), "spec.containers: Forbidden: pod updates may not add or remove containers"},
		{"Pod", "", pod, with("spec: {", "spec: {initContainers: [{name: i}], "), "spec.initContainers: Forbidden"},
		{"Pod", "status", pod, "{spec: {containers: []}, status: {phase: Running}}", ""},
	} {
		k := kind(t, c.kind)
		old := created(t, k, c.old)
		next := content(t, k, c.next)
		if spec, ok := next["spec"].(map[string]any); ok && c.kind == "Pod" { // a client sends back what the server has filled in
			had := old["spec"].(map[string]any)
			spec["priority"], spec["preemptionPolicy"] = had["priority"], had["preemptionPolicy"]
			added := had["tolerations"].([]any)[1:]
			all, _ := spec["tolerations"].([]any)
			spec["tolerations"] = append(all[:min(1, len(all)):min(1, len(all))], append(runtime.DeepCopyJSONValue(added).([]any), all[min(1, len(all)):]...)...)
		}
		says(t, Update(k, c.by, old, next), c.want)
	}
	k := kind(t, "ConfigMap")
	next := content(t, k, "{metadata: {name: b}}")
	says(t, Update(k, "", created(t, k, "{}"), next), `metadata.name: Invalid value: "b": field is immutable`)
}
