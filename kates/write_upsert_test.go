package kates_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kates-go/kates/kates"
)

// TestUpsertSendsWhatTheWatchDoesNotShow: each of these may change the object.
func TestUpsertSendsWhatTheWatchDoesNotShow(t *testing.T) {
	for form, of := range map[string]budgetForm{"typed": budgetForms["typed"], "untyped": budgetForms["untyped"]} {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, sent := newWriter(t, of)
				upsert := func(want string, change func(*policyv1.PodDisruptionBudget), opts ...kates.WriteOption) {
					t.Helper()
					b := w.wanted()
					change(b)
					sent()
					require.NoError(t, w.client.Upsert(t.Context(), nil, b, nil, opts...))
					assert.Equal(t, want, sent())
				}
				same := func(*policyv1.PodDisruptionBudget) {}
				upsert("nothing", same)
				upsert("get, update", same, kates.DryRun())
				upsert("get, update", func(b *policyv1.PodDisruptionBudget) { b.Labels = map[string]string{"a": "b"} })
				upsert("nothing", func(b *policyv1.PodDisruptionBudget) { b.Labels = map[string]string{"a": "b"} })
				upsert("nothing", same) // labels are added
				upsert("get, update", func(b *policyv1.PodDisruptionBudget) { b.Finalizers = []string{"example.com/g"} })
				two := intstr.FromInt32(2)
				upsert("get, update", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = &two })
				upsert("get, update", same) // the own write is what is shown

				now := w.name()
				require.NoError(t, w.client.Get(t.Context(), now, now))
				sent()
				require.NoError(t, w.client.Upsert(t.Context(), nil, now, nil))
				assert.Equal(t, "nothing", sent(), "the very object")
				behind := now.DeepCopy()
				behind.ResourceVersion = w.budget.ResourceVersion
				require.NoError(t, w.client.Upsert(t.Context(), nil, behind, nil))
				assert.Equal(t, "update, get, update", sent(), "another version")

				target := &policyv1.PodDisruptionBudget{}
				require.NoError(t, w.client.Upsert(t.Context(), nil, w.wanted(), target))
				assert.Equal(t, now.ResourceVersion, target.ResourceVersion)
				assert.Equal(t, "nothing", sent())
			})
		})
	}
}
