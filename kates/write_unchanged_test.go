package kates_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// ownBudget is a struct of the program's own for a PodDisruptionBudget.
type ownBudget struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name            string      `json:"name"`
		Namespace       string      `json:"namespace"`
		UID             string      `json:"uid"`
		Generation      int64       `json:"generation"`
		ResourceVersion string      `json:"resourceVersion"`
		Created         metav1.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		MinAvailable int `json:"minAvailable"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// A writer calls the methods on a budget that is as they want it.
type writer struct {
	*testing.T
	client *kates.Client
	budget *policyv1.PodDisruptionBudget // as the server has it
	owner  *kates.ConfigMap
	opts   []kates.WriteOption
}

// name names the budget, without a version that could be a precondition.
func (w writer) name() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: w.budget.Name}}
}

func (w writer) wanted() *policyv1.PodDisruptionBudget {
	b := w.name()
	b.Spec = w.budget.Spec
	b.Spec.Selector = nil
	return b
}

func budgetAs[T any](w writer) *T {
	out := new(T)
	u, err := kates.NewUnstructuredFromObject(w.budget)
	require.NoError(w, err)
	data, err := json.Marshal(u)
	require.NoError(w, err)
	require.NoError(w, json.Unmarshal(data, out))
	return out
}

var goodCondition = kates.Condition{Type: "Ready", Status: "True", Reason: "Good"}

func modifyIn[T any](w writer) error {
	_, err := kates.Modify(w.Context(), w.client, w.name(), func(*T) error { return nil }, w.opts...)
	return err
}

func modifyStatusIn[T any](w writer) error {
	_, err := kates.ModifyStatus(w.Context(), w.client, w.name(), func(*T) error { return nil }, w.opts...)
	return err
}

// budgetForm is a column of the table: how the client watches the budgets.
type budgetForm struct {
	watch                func(context.Context, *kates.Client) (wait func())
	modify, modifyStatus func(writer) error // in the form of the field
}

func watchBudgets[S any](ctx context.Context, c *kates.Client) func() {
	w, err := kates.Watch[S](ctx, c)
	if err != nil {
		panic(err)
	}
	<-w.Changed()
	return w.Close
}

var budgetForms = map[string]budgetForm{
	"typed": {
		watchBudgets[struct {
			Budgets []*policyv1.PodDisruptionBudget
		}],
		modifyIn[policyv1.PodDisruptionBudget], modifyStatusIn[policyv1.PodDisruptionBudget],
	},
	"untyped": {
		watchBudgets[struct {
			Budgets []*kates.Unstructured `kates:"pdb"`
		}],
		modifyIn[kates.Unstructured], modifyStatusIn[kates.Unstructured],
	},
	"metadata": {
		watchBudgets[struct {
			Budgets []*kates.PartialObjectMetadata `kates:"pdb"`
		}],
		modifyIn[kates.PartialObjectMetadata], modifyStatusIn[policyv1.PodDisruptionBudget],
	},
	"struct of one's own": {
		watchBudgets[struct {
			Budgets []*ownBudget `kates:"pdb"`
		}],
		modifyIn[ownBudget], modifyStatusIn[ownBudget],
	},
	"not watched": {
		func(context.Context, *kates.Client) func() { return func() {} },
		modifyIn[policyv1.PodDisruptionBudget], modifyStatusIn[policyv1.PodDisruptionBudget],
	},
}

// unchangedCalls are the rows of the table.
var unchangedCalls = map[string]func(w writer, form budgetForm) error{
	"Create": func(w writer, _ budgetForm) error {
		err := w.client.Create(w.Context(), w.wanted(), nil, w.opts...)
		assert.True(w, kates.IsAlreadyExists(err), err)
		return nil
	},
	"Update": func(w writer, _ budgetForm) error {
		return w.client.Update(w.Context(), w.budget, nil, w.opts...)
	},
	"UpdateStatus": func(w writer, _ budgetForm) error {
		return w.client.UpdateStatus(w.Context(), w.budget, nil, w.opts...)
	},
	"UpdateSubresource": func(w writer, _ budgetForm) error {
		return w.client.UpdateSubresource(w.Context(), w.budget, "status", nil, nil, w.opts...)
	},
	"Patch": func(w writer, _ budgetForm) error {
		return w.client.Patch(w.Context(), w.name(), kates.MergePatchType, []byte(`{}`), nil, w.opts...)
	},
	"PatchSubresource": func(w writer, _ budgetForm) error {
		return w.client.PatchSubresource(w.Context(), w.name(), "status", kates.MergePatchType, []byte(`{}`), nil, w.opts...)
	},
	"CreateSubresource": func(w writer, _ budgetForm) error {
		err := w.client.CreateSubresource(w.Context(), w.name(), "status", w.name(), nil, w.opts...)
		assert.Error(w, err, "no such kind takes a POST of its status")
		return nil
	},
	"Apply": func(w writer, _ budgetForm) error {
		return w.client.Apply(w.Context(), w.wanted(), nil, w.opts...)
	},
	"Delete": func(w writer, _ budgetForm) error {
		gone := w.name()
		gone.Name = "gone"
		err := w.client.Delete(w.Context(), gone, nil, w.opts...)
		assert.True(w, kates.IsNotFound(err), err)
		return nil
	},
	"DeleteAll": func(w writer, _ budgetForm) error {
		return w.client.DeleteAll(w.Context(), kates.Query{Kind: "pdb", Namespace: "empty"}, w.opts...)
	},
	"Upsert of the kind's Go type": func(w writer, _ budgetForm) error {
		wanted := w.name()
		wanted.Spec = w.budget.Spec
		return w.client.Upsert(w.Context(), nil, wanted, nil, w.opts...)
	},
	"Upsert of an untyped object": func(w writer, _ budgetForm) error {
		u := budgetAs[kates.Unstructured](w)
		wanted := kates.NewUnstructured("PodDisruptionBudget", "policy/v1")
		wanted.SetNamespace("default")
		wanted.SetName(w.budget.Name)
		wanted.Object["spec"] = u.Object["spec"]
		return w.client.Upsert(w.Context(), nil, wanted, nil, w.opts...)
	},
	"Modify in the form of the field": func(w writer, form budgetForm) error { return form.modify(w) },
	"Modify in the kind's Go type": func(w writer, _ budgetForm) error {
		return modifyIn[policyv1.PodDisruptionBudget](w)
	},
	"Modify in a struct of one's own":       func(w writer, _ budgetForm) error { return modifyIn[ownBudget](w) },
	"ModifyStatus in the form of the field": func(w writer, form budgetForm) error { return form.modifyStatus(w) },
	"SetConditions": func(w writer, _ budgetForm) error {
		return w.client.SetConditions(w.Context(), w.budget, []kates.Condition{goodCondition}, w.opts...)
	},
	"AddFinalizer": func(w writer, _ budgetForm) error {
		return w.client.AddFinalizer(w.Context(), w.name(), "example.com/f", w.opts...)
	},
	"RemoveFinalizer": func(w writer, _ budgetForm) error {
		return w.client.RemoveFinalizer(w.Context(), w.name(), "example.com/none", w.opts...)
	},
	"UnderFinalizer in the kind's Go type": func(w writer, _ budgetForm) error {
		nop := func(context.Context, *policyv1.PodDisruptionBudget) error { return nil }
		return kates.UnderFinalizer(w.Context(), w.client, w.name(), "example.com/f", nop, nop, w.opts...)
	},
	"ApplyOwned with Existing, after its own apply": func(w writer, _ budgetForm) error {
		owned := w.wanted()
		owned.Name = "owned"
		_, err := w.client.ApplyOwned(w.Context(), kates.OwnedSet{
			Owner: w.owner, SetName: "s", Objects: []kates.Object{owned}, Existing: []kates.Object{},
		}, w.opts...)
		return err
	},
}

// newWriter returns a writer whose client watches budgets, and how its requests are counted.
func newWriter(t *testing.T, form budgetForm) (w writer, sent func() string) {
	server, faults := katestest.NewServer(t), katestest.NewFaults(t, 1)
	other := server.Client(t)
	defer other.Close()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: kates.ObjectMeta{
		Namespace: "default", Name: "b", Finalizers: []string{"example.com/f"}, Generation: 1,
	}}
	least := intstr.FromInt32(1)
	b.Spec.MinAvailable = &least
	owner := &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: "owner"}}
	require.NoError(t, other.Create(t.Context(), owner, owner))
	require.NoError(t, other.Create(t.Context(), b, b))
	require.NoError(t, other.SetConditions(t.Context(), b, []kates.Condition{goodCondition}))
	require.NoError(t, other.Get(t.Context(), b, b))

	config := rest.CopyConfig(server.Config)
	config.Wrap(faults.Wrap)
	c, err := kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	t.Cleanup(form.watch(t.Context(), c))
	from := 0
	return writer{T: t, client: c, budget: b, owner: owner}, func() string {
		var verbs []string
		all := faults.Requests(katestest.Match{})
		for _, r := range all[from:] {
			if r.Resource == "poddisruptionbudgets" && r.Verb != "watch" {
				verbs = append(verbs, r.Verb)
			}
		}
		if from = len(all); verbs == nil {
			return "nothing"
		}
		return strings.Join(verbs, ", ")
	}
}

// TestWhatWritesSendWhenNothingChangesIsInTheTopics: the table there says it for each method and
// each form of field.
func TestWhatWritesSendWhenNothingChangesIsInTheTopics(t *testing.T) {
	documented := unchangedTable(t)
	for form, of := range budgetForms {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, sent := newWriter(t, of)
				said := documented[form]
				assert.Len(t, said, len(unchangedCalls), "rows of the table")
				for method, call := range unchangedCalls {
					require.NoError(t, call(w, of), method) // may change something, such as who owns a field
					require.NoError(t, w.client.Sync(t.Context()))
					fresh := w.name()
					require.NoError(t, w.client.Get(t.Context(), fresh, fresh))
					w.budget = fresh
					sent()
					require.NoError(t, call(w, of), method)
					assert.Equal(t, said[method], sent(), method)
				}
			})
		})
	}
}

// TestOptionsThatAskTheServerAlwaysSend: it may know of a change that no watch has brought yet.
func TestOptionsThatAskTheServerAlwaysSend(t *testing.T) {
	for form, of := range budgetForms {
		for option, opt := range map[string]func(writer) kates.WriteOption{
			"dry run": func(writer) kates.WriteOption { return kates.DryRun() },
			"UID":     func(w writer) kates.WriteOption { return kates.IfUID(w.budget.UID) },
			"version": func(w writer) kates.WriteOption { return kates.IfResourceVersion(w.budget.ResourceVersion) },
		} {
			t.Run(form+" "+option, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, sent := newWriter(t, of)
					for method, call := range unchangedCalls {
						owned := strings.HasPrefix(method, "ApplyOwned")
						if method == "Create" || method == "DeleteAll" || strings.HasSuffix(method, "Subresource") || owned && option != "dry run" {
							continue // these take no such option, or always send
						}
						if owned {
							require.NoError(t, call(w, of), method)
						}
						now := w.name()
						require.NoError(t, w.client.Get(t.Context(), now, now))
						w.budget = now
						sent()
						asking := w
						asking.opts = []kates.WriteOption{opt(w)}
						require.NoError(t, call(asking, of), method)
						assert.NotEqual(t, "nothing", sent(), method)
					}
				})
			})
		}
	}
}

// unchangedTable reads the table: what is sent, by form and method.
func unchangedTable(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "topics.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| if nothing changes |")
	require.True(t, found, "the table is gone")
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(table, "\n")
	forms := cells(lines[0])
	said := make(map[string]map[string]string)
	for _, form := range forms {
		said[form] = make(map[string]string)
	}
	assert.Len(t, forms, len(budgetForms))
	code := regexp.MustCompile("`([A-Za-z]+)`(?:, )?")
	for _, line := range lines[2:] {
		row := cells(line)
		require.Len(t, row, len(forms)+1, line)
		names, rest := code.FindAllStringSubmatch(row[0], -1), code.ReplaceAllString(row[0], "")
		if strings.HasPrefix(row[0], "`ApplyOwned`") {
			names, rest = names[:1], strings.ReplaceAll(strings.TrimPrefix(row[0], "`ApplyOwned`"), "`", "")
		}
		for _, name := range names {
			method := strings.TrimSpace(name[1] + " " + strings.TrimSpace(rest))
			for i, form := range forms {
				said[form][method] = row[i+1]
			}
		}
	}
	return said
}

func cells(line string) []string {
	all := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return slices.Clip(all)
}

// TestAChangeOfConditionsInAStructOfOnesOwnIsOneRequest: what the struct does not know stays.
func TestAChangeOfConditionsInAStructOfOnesOwnIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, sent := newWriter(t, budgetForms["struct of one's own"])
		sent()
		other := kates.Condition{Type: "Other", Status: "False", Reason: "Bad"}
		bad := goodCondition
		bad.Status = "False"
		require.NoError(t, w.client.SetConditions(t.Context(), w.budget, []kates.Condition{other}))
		require.NoError(t, w.client.SetConditions(t.Context(), w.budget, []kates.Condition{bad}))
		assert.Equal(t, "patch, patch", sent())
		now := w.name()
		require.NoError(t, w.client.Get(t.Context(), now, now))
		assert.Equal(t, w.budget.Spec, now.Spec)
		require.Len(t, now.Status.Conditions, 2)
		assert.Equal(t, "Ready False", now.Status.Conditions[0].Type+" "+string(now.Status.Conditions[0].Status))
		assert.Equal(t, "Other", now.Status.Conditions[1].Type)
	})
}
