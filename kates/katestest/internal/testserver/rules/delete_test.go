package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func deleteOptions(text string) (o metav1.DeleteOptions) {
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}

// TestADeletionEndsAnObjectOrMarksIt follows objects through several DELETEs, ten seconds apart.
func TestADeletionEndsAnObjectOrMarksIt(t *testing.T) {
	const gone = "gone"
	marked := func(at, grace string) string {
		return "metadata.deletionTimestamp='2026-01-02T03:04:" + at + "Z' metadata.deletionGracePeriodSeconds=" + grace
	}
	type step struct{ options, want string }
	for _, c := range []struct {
		name, kind, object string
		steps              []step
	}{
		{"nothing keeps it", "ConfigMap", "{}", []step{{"", gone}}},
		{"a finalizer keeps it", "ConfigMap", "{metadata: {finalizers: [example.com/f]}}", []step{{"", marked("05", "0")}, {"", marked("05", "0")}}},
		{"foreground", "ConfigMap", "{}", []step{{"{propagationPolicy: Foreground}", "metadata.finalizers=[foregroundDeletion] " + marked("05", "0")}}},
		{"orphans, as old clients say it", "ConfigMap", "{}", []step{{"{orphanDependents: true}", "metadata.finalizers=[orphan]"}}},
		{"another policy", "ConfigMap", "{metadata: {finalizers: [orphan]}}", []step{{"{propagationPolicy: Background}", gone}}},
		{"the policy may change", "ConfigMap", "{metadata: {finalizers: [example.com/f]}}", []step{
			{"{propagationPolicy: Orphan}", "metadata.finalizers=[example.com/f,orphan]"}, {"{propagationPolicy: Foreground}", "metadata.finalizers=[example.com/f,foregroundDeletion]"}}},
		{"a deployment has another generation then", "Deployment.apps", "{metadata: {finalizers: [example.com/f]}}", []step{
			{"", "metadata.generation=2"}, {"", "metadata.generation=2"}}},

		{"a pod without a node", "Pod", "{}", []step{{"", gone}}},
		{"a pod on a node", "Pod", "{spec: {nodeName: node-1}}", []step{{"", marked("35", "30")}, {"", marked("35", "30")}}},
		{"a pod that says how long", "Pod", "{spec: {nodeName: node-1, terminationGracePeriodSeconds: 20}}", []step{{"", marked("25", "20")}}},
		{"a pod that is asked how long", "Pod", "{spec: {nodeName: node-1}}", []step{{"{gracePeriodSeconds: 50}", marked("55", "50")}, {"{gracePeriodSeconds: 5}", marked("15", "1")}}},
		{"less time is left", "Pod", "{spec: {nodeName: node-1}}", []step{{"{gracePeriodSeconds: 50}", marked("55", "50")}, {"{gracePeriodSeconds: 20}", marked("25", "20")}}},
		{"more time is not given", "Pod", "{spec: {nodeName: node-1}}", []step{{"{gracePeriodSeconds: 20}", marked("25", "20")}, {"{gracePeriodSeconds: 50}", marked("25", "20")}}},
		{"at once", "Pod", "{spec: {nodeName: node-1}}", []step{{"", marked("35", "30")}, {"{gracePeriodSeconds: 0}", gone}}},
		{"a negative time is a second", "Pod", "{spec: {nodeName: node-1}}", []step{{"{gracePeriodSeconds: -1}", marked("06", "1")}}},
		{"a pod that is kept", "Pod", "{metadata: {finalizers: [example.com/f]}}", []step{{"", marked("05", "0")}, {"", marked("05", "0")}}},

		{"a namespace", "Namespace", "{}", []step{{"", "status.phase=Terminating metadata.deletionTimestamp='2026-01-02T03:04:05Z' metadata.deletionGracePeriodSeconds"},
			{"", "status.phase=Terminating"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := kind(t, c.kind)
			is := created(t, k, c.object)
			for i, s := range c.steps {
				d, err := Delete(k, is, deleteOptions(s.options), now.Add(time.Duration(i)*10*time.Second))
				require.NoError(t, err)
				assert.Equal(t, s.want == gone, d.Gone, "DELETE %d", i)
				if s.want != gone {
					has(t, d.Next, splitWanted(s.want)...)
				}
				is = d.Next
			}
		})
	}
}

func TestANamespaceIsGoneWhenNothingKeepsIt(t *testing.T) {
	k := kind(t, "Namespace")
	d, err := Delete(k, created(t, k, "{metadata: {finalizers: [example.com/f]}}"), deleteOptions(""), now)
	require.NoError(t, err)
	assert.False(t, Ended(k, d.Next))
	next := content(t, k, "{metadata: {finalizers: [example.com/f]}}") // its contents are gone
	next["spec"] = map[string]any{"finalizers": []any{}}
	require.NoError(t, Update(k, "finalize", d.Next, next))
	assert.False(t, Ended(k, next), "a finalizer of its own keeps it")
	d, err = Delete(k, next, deleteOptions(""), now)
	require.NoError(t, err)
	assert.False(t, d.Gone)
	object(next).SetFinalizers(nil)
	assert.True(t, Ended(k, next))
	d, err = Delete(k, next, deleteOptions(""), now)
	require.NoError(t, err)
	assert.True(t, d.Gone)

	assert.True(t, apierrors.IsForbidden(LastingNamespace(k, "kube-system")))
	require.NoError(t, LastingNamespace(k, "a"))
	require.NoError(t, LastingNamespace(kind(t, "ConfigMap"), "default"))
}

func TestADeletionOfAnotherObjectIsAConflict(t *testing.T) {
	for _, name := range []string{"ConfigMap", "Namespace"} {
		k := kind(t, name)
		old := created(t, k, "{}")
		for options, want := range map[string]string{
			"{preconditions: {uid: uid-1, resourceVersion: '7'}}": "",
			"{preconditions: {uid: other}}":                       "the UID in the precondition (other) does not match the UID in record (uid-1)",
			"{preconditions: {resourceVersion: '6'}}":             "the ResourceVersion in the precondition (6) does not match the ResourceVersion in record (7)",
		} {
			_, err := Delete(k, old, deleteOptions(options), now)
			if want == "" {
				require.NoError(t, err)
				continue
			}
			assert.True(t, apierrors.IsConflict(err), "%v", err)
			require.ErrorContains(t, err, want)
		}
	}
}
