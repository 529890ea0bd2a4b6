package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/kates"
)

// call is one verb of the client, on a Host that was read and then changed.
type call struct {
	verb string
	do   func(ctx context.Context, c *kates.Client, h *kates.Unstructured, opts ...kates.WriteOption) error
}

// bare returns a Host without the fields that the server adds.
func bare(h *kates.Unstructured, name string) *kates.Unstructured {
	u := object(hosts, h.GetNamespace(), name, h.GetLabels())
	u.Object["spec"] = h.Object["spec"]
	return u
}

func specPatch(h *kates.Unstructured, format func(spec any) any) []byte {
	data, err := json.Marshal(format(h.Object["spec"]))
	if err != nil {
		panic(err)
	}
	return data
}

// calls are all verbs that write.
var calls = []call{
	{"create", func(ctx context.Context, c *kates.Client, h *kates.Unstructured, opts ...kates.WriteOption) error {
		return c.Create(ctx, bare(h, "new"), nil, opts...)
	}},
	{"update", func(ctx context.Context, c *kates.Client, h *kates.Unstructured, opts ...kates.WriteOption) error {
		return c.Update(ctx, h, nil, opts...)
	}},
	{"update the status", func(ctx context.Context, c *kates.Client, h *kates.Unstructured, opts ...kates.WriteOption) error {
		return c.UpdateStatus(ctx, h, nil, opts...)
	}},
	{"merge patch", func(ctx context.Context, c *kates.Client, h *kates.Unstructured, opts ...kates.WriteOption) error {
		patch := specPatch(h, func(spec any) any { return map[string]any{"spec": spec} })
		return c.Patch(ctx, h, kates.MergePatchType, patch, nil, opts...)
	}},
	{"JSON patch", func(ctx context.Context, c *kates.Client, h *kates.Unstructured, opts ...kates.WriteOption) error {
		patch := specPatch(h, func(spec any) any { return []any{map[string]any{"op": "add", "path": "/spec", "value": spec}} })
		return c.Patch(ctx, h, kates.JSONPatchType, patch, nil, opts...)
	}},
	{"apply", func(ctx context.Context, c *kates.Client, h *kates.Unstructured, opts ...kates.WriteOption) error {
		return c.Apply(ctx, bare(h, h.GetName()), nil, append(opts, kates.ForceOwnership())...)
	}},
	{"upsert", func(ctx context.Context, c *kates.Client, h *kates.Unstructured, opts ...kates.WriteOption) error {
		return c.Upsert(ctx, nil, bare(h, h.GetName()), nil, opts...)
	}},
	{"delete", func(ctx context.Context, c *kates.Client, h *kates.Unstructured, opts ...kates.WriteOption) error {
		return c.Delete(ctx, h, nil, opts...)
	}},
}

// victim is a Host as the server has it, with changes to write.
type victim struct {
	t      *testing.T
	w      *wire
	ns     string
	client *kates.Client
	reader *reader
	stored *kates.Unstructured
}

func newVictim(t *testing.T, w *wire) *victim {
	t.Helper()
	v := &victim{t: t, w: w, ns: namespace(t)}
	made, err := foreign(t).Resource(hosts).Namespace(v.ns).Create(t.Context(), object(hosts, v.ns, "x", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	v.stored = made
	return v
}

// watch starts a client's late reader.
func (v *victim) watch(c *kates.Client) {
	v.t.Helper()
	v.client = c
	v.reader = lateReader(v.t, v.w, c, kates.Query{Kind: "hosts", Namespace: v.ns}, "hosts")
}

// changed returns the Host with the changes to write.
func (v *victim) changed() *kates.Unstructured {
	u := v.stored.DeepCopy()
	u.Object["spec"] = map[string]any{"hostname": "changed"}
	u.Object["status"] = map[string]any{"state": "changed"}
	return u
}

// fails checks that a call fails with the expected error, and leaves no trace.
func (v *victim) fails(c call, h *kates.Unstructured, as func(error) bool, opts ...kates.WriteOption) {
	v.t.Helper()
	err := c.do(v.t.Context(), v.client, h, opts...)
	assert.True(v.t, as(err), "%s: %v", c.verb, err)
	v.untouched(c.verb)
}

// untouched checks that a write left no trace.
func (v *victim) untouched(verb string) {
	v.t.Helper()
	changed, err := v.reader.acc.Update(v.t.Context(), &v.reader.snap)
	require.NoError(v.t, err)
	assert.False(v.t, changed, "G4: %s left a trace", verb)
	assert.Equal(v.t, []string{"x@" + v.stored.GetResourceVersion()}, fingerprint(v.reader.snap.Objects), verb)
	assert.Zero(v.t, v.reader.acc.Status().Queries[0].Pending, verb)
}

func TestG4AWriteWhosePreconditionFailsLeavesNoTrace(t *testing.T) {
	t.Parallel()
	v := newVictim(t, newWire(t))
	v.watch(v.w.client(t))
	for _, c := range calls {
		if c.verb == "create" || c.verb == "upsert" {
			continue // these take no preconditions
		}
		v.fails(c, v.changed(), kates.IsConflict, kates.IfUID("another"))
		v.fails(c, v.changed(), kates.IsConflict, kates.IfResourceVersion("1"))
		// the server would read these as no precondition
		v.fails(c, v.changed(), kates.IsConflict, kates.IfUID(""))
		v.fails(c, v.changed(), kates.IsConflict, kates.IfResourceVersion(""))
		v.fails(c, v.changed(), kates.IsConflict, kates.IfResourceVersion("0"))
	}
	v.reader.settled(v.w, "hosts")
}

func TestG4ADryRunOfAnyVerbLeavesNoTrace(t *testing.T) {
	t.Parallel()
	v := newVictim(t, newWire(t))
	v.watch(v.w.client(t))
	for _, c := range calls {
		v.fails(c, v.changed(), func(err error) bool { return err == nil }, kates.DryRun())
	}
	v.reader.settled(v.w, "hosts")
}

func TestG4AWriteThatIsForbiddenLeavesNoTrace(t *testing.T) {
	t.Parallel()
	v := newVictim(t, newWire(t))
	rule := reading("getambassador.io", "hosts")
	rule.Verbs = append(rule.Verbs, "get")
	user(t, "reads-"+v.ns, rule)
	var err error
	v.w.base, err = testCluster.AddUser("reads-" + v.ns)
	require.NoError(t, err)
	v.watch(v.w.client(t))
	for _, c := range calls {
		v.fails(c, v.changed(), apierrors.IsForbidden)
	}
	v.reader.settled(v.w, "hosts")
}

func TestG4AWriteOfWhatIsNotThereLeavesNoTrace(t *testing.T) {
	t.Parallel()
	v := newVictim(t, newWire(t))
	v.watch(v.w.client(t))
	for _, c := range calls {
		h := v.changed()
		h.SetName("missing")
		if c.verb == "create" || c.verb == "apply" || c.verb == "upsert" {
			h.SetNamespace("missing") // these would create the object
		}
		v.fails(c, h, kates.IsNotFound)
	}
	v.reader.settled(v.w, "hosts")
}

func TestG4AWriteThatIsAConflictLeavesNoTrace(t *testing.T) {
	t.Parallel()
	v := newVictim(t, newWire(t))
	v.watch(v.w.client(t))
	stale := v.changed()
	stale.SetResourceVersion("1")
	for _, c := range calls {
		switch c.verb {
		case "update", "update the status":
			v.fails(c, stale, kates.IsConflict)
		case "create":
			err := v.client.Create(t.Context(), bare(stale, "x"), nil)
			assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
			v.untouched(c.verb)
		}
	}
	v.reader.settled(v.w, "hosts")
}

func TestG4AWriteThatIsInvalidLeavesNoTrace(t *testing.T) {
	t.Parallel()
	v := newVictim(t, newWire(t))
	v.watch(v.w.client(t))
	for _, c := range calls {
		h := v.changed()
		h.Object["spec"] = map[string]any{"hostname": int64(7)}
		h.Object["status"] = map[string]any{"state": int64(7)}
		invalid := apierrors.IsInvalid
		if c.verb == "apply" { // the server says that it does not fit the schema
			invalid = apierrors.IsInternalError
		}
		v.fails(c, h, invalid, kates.Propagation("nonsense"))
	}
	v.reader.settled(v.w, "hosts")
}

// deny makes admission refuse all writes of Hosts in a namespace.
func deny(t *testing.T, v *victim) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	name, everything := "deny-"+v.ns, []admissionv1.OperationType{admissionv1.OperationAll}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": v.ns}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{Operations: everything,
				Rule: admissionv1.Rule{APIGroups: []string{"getambassador.io"}, APIVersions: []string{"*"}, Resources: []string{"hosts", "hosts/status"}}}}},
		},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "denied by the test"}},
	}}
	_, err = admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	require.NoError(t, err)
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	_, err = admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	d := foreign(t).Resource(hosts).Namespace(v.ns)
	require.Eventually(t, func() bool {
		_, err := d.Create(t.Context(), object(hosts, v.ns, "probe", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err)
	}, patience, 50*time.Millisecond, "the policy is in force")
}

func TestG4AWriteThatAdmissionDeniesLeavesNoTrace(t *testing.T) {
	t.Parallel()
	v := newVictim(t, newWire(t))
	v.watch(v.w.client(t))
	deny(t, v)
	for _, c := range calls {
		v.fails(c, v.changed(), func(err error) bool { return assert.ErrorContains(t, err, "denied by the test") })
	}
	v.reader.settled(v.w, "hosts")
}

// outcomes are the ways in which the result of a write stays unknown.
var outcomes = map[string]struct {
	sent bool
	do   func(v *victim, do func(context.Context) error) error
}{
	"the connection breaks before the request is sent": {false, func(v *victim, do func(context.Context) error) error {
		v.w.hookBefore(func(r *http.Request) error {
			if r.Method == http.MethodGet {
				return nil
			}
			return errLost
		})
		return do(v.t.Context())
	}},
	"the connection breaks after the request was sent": {true, func(v *victim, do func(context.Context) error) error {
		v.w.hookAfter(func(*http.Request) error { return errLost })
		return do(v.t.Context())
	}},
	"the context is cancelled after the request was sent": {true, func(v *victim, do func(context.Context) error) error {
		ctx, cancel := context.WithCancel(v.t.Context())
		defer cancel()
		v.w.hookAfter(func(r *http.Request) error {
			cancel()
			<-r.Context().Done()
			return r.Context().Err()
		})
		return do(ctx)
	}},
	"the time is up after the request was sent": {true, func(v *victim, do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(v.t.Context(), time.Hour)
		defer cancel()
		v.w.hookAfter(func(*http.Request) error { return context.DeadlineExceeded })
		return do(ctx)
	}},
	"the context was cancelled before": {false, func(v *victim, do func(context.Context) error) error {
		ctx, cancel := context.WithCancel(v.t.Context())
		cancel()
		return do(ctx)
	}},
}

func TestG4AWriteOfUnknownOutcomeHidesAndInventsNothingAndTheWatchTells(t *testing.T) {
	t.Parallel()
	for name, outcome := range outcomes {
		for _, c := range calls {
			t.Run(name+", "+c.verb, func(t *testing.T) {
				t.Parallel()
				v := newVictim(t, newWire(t))
				v.watch(v.w.client(t))
				err := outcome.do(v, func(ctx context.Context) error { return c.do(ctx, v.client, v.changed()) })
				require.Error(t, err)
				v.untouched(c.verb)
				v.w.hookBefore(nil)
				v.w.hookAfter(nil)
				v.w.set("hosts", 0)
				server := func() (all []string) {
					list, err := foreign(t).Resource(hosts).Namespace(v.ns).List(t.Context(), metav1.ListOptions{})
					require.NoError(t, err)
					for i := range list.Items {
						all = append(all, fingerprint([]*kates.Unstructured{&list.Items[i]})...)
					}
					return all
				}()
				assert.Equal(t, outcome.sent, !assert.ObjectsAreEqual([]string{"x@" + v.stored.GetResourceVersion()}, server), "%v", server)
				v.reader.swift("what the server made of it", func() bool {
					v.reader.look("")
					return assert.ObjectsAreEqual(server, fingerprint(v.reader.snap.Objects))
				})
				v.reader.settled(v.w, "hosts")
			})
		}
	}
}
