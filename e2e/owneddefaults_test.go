package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// What the server makes of zeros and empty parts is no foreign value, in each form of a watch.
func TestApplyOwnedTakesDefaultsOfTheServerForWhatWasApplied(t *testing.T) {
	labels := map[string]string{"app": "x"}
	pod := corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "E"}}}},
		Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
	}
	for name, open := range map[string]func(*testing.T, *kates.Client, string) error{
		"typed": func(t *testing.T, c *kates.Client, ns string) error {
			for _, watch := range []func(*testing.T, *kates.Client, string) error{
				open[*corev1.Service], open[*rbacv1.RoleBinding], open[*corev1.Pod], open[*appsv1.Deployment],
			} {
				require.NoError(t, watch(t, c, ns))
			}
			return nil
		},
		"untyped": func(t *testing.T, c *kates.Client, ns string) error {
			for _, kind := range []string{"Service", "RoleBinding", "Pod", "Deployment"} {
				l, err := kates.NewLister[*kates.Unstructured](t.Context(), c, kates.Query{Kind: kind, Namespace: ns})
				require.NoError(t, err)
				t.Cleanup(l.Close)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwnedTest(t)
			set := o.set(
				&corev1.Service{ObjectMeta: named(o.ns, "x"), Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}},
				&rbacv1.RoleBinding{ObjectMeta: named(o.ns, "x"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "u"}}},
				&corev1.Pod{ObjectMeta: named(o.ns, "x"), Spec: pod},
				&appsv1.Deployment{ObjectMeta: named(o.ns, "x"), Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
				}},
			)
			set.Existing = []kates.Object{}
			o.apply(set)
			f := newFollower(t, nil, kates.WithNamespace(o.ns))
			require.NoError(t, open(t, f.client, o.ns))
			before := len(f.faults.Requests(katestest.Match{}))
			result, err := f.client.ApplyOwned(t.Context(), set)
			require.NoError(t, err)
			assert.Len(t, result.Unchanged, len(set.Objects), fmt.Sprint(result.Applied))
			for _, r := range f.faults.Requests(katestest.Match{})[before:] {
				assert.NotEqual(t, "patch", r.Verb, r.Resource)
			}
		})
	}
}
