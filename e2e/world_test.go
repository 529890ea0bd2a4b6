package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

var worldKinds = []schema.GroupVersionResource{pods, configMaps, hosts}

// worldNames is the number of names of a kind in a namespace: 34 names, 3 kinds and 2 namespaces
// are 204 objects.
const worldNames = 34

// id is where an object is stored.
type id struct{ resource, ns, name string }

// written is an own write that has returned nil. From then on every Update shows its effect.
type written struct {
	verb     string
	id       id
	objectRV uint64    // of the answer; 0: it is gone
	uid      types.UID // of the deleted object; "" if the answer has none
	afterRV  uint64    // the object was deleted later than this
	bare     bool      // the answer has no object: it is a Status, or nobody can read it
}

// world is the objects of the run, which all writers share, and the record of what the own
// writers wrote.
type world struct {
	namespaces []string
	label      string // on all objects, for queries over all namespaces
	strips     bool   // the history records what strip leaves of an object

	// For a run with faults: which errors the faults cause, and how many writes were left to the
	// watch so far.
	faulty    func(error) bool
	unsettled func() int
	// For a run on several servers: what more may cause an error of a write that was not made, and
	// what is left of an object where what is shown and what etcd stores are compared.
	excuses func(error) bool
	plain   func(*kates.Unstructured) *kates.Unstructured
	// ledger, if there is one, learns of each call of an own writer and of its end.
	ledger *ledger
	client *kates.Client
	others dynamic.Interface

	mu       sync.Mutex
	record   []written
	newestRV uint64         // the version of the newest own write
	done     map[string]int // writes that succeeded, by verb
	lost     int            // writes of unknown outcome
}

// newWorld makes an empty world. Other writers use a configuration of their own.
func newWorld(t *testing.T, c *kates.Client, config *rest.Config) *world {
	t.Helper()
	others, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	w := &world{client: c, others: others, done: map[string]int{}}
	for range 2 {
		ns := namespaceBy(t, config)
		w.namespaces = append(w.namespaces, ns)
		// Pods need a service account.
		require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named(ns, "default")}, nil))
	}
	w.label = w.namespaces[0]
	return w
}

// known returns how many own writes have returned.
func (w *world) known() (n int, newestRV uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.record), w.newestRV
}

func (w *world) pick(r *rand.Rand) id {
	return id{worldKinds[r.IntN(len(worldKinds))].Resource, w.namespaces[r.IntN(2)], fmt.Sprintf("o-%02d", r.IntN(worldNames))}
}

func resourceOf(k id) schema.GroupVersionResource {
	for _, gvr := range worldKinds {
		if gvr.Resource == k.resource {
			return gvr
		}
	}
	panic(k.resource)
}

// fresh returns an object as a writer would create it: in or out of the queries, on a node or
// not, with or without a finalizer.
func (w *world) fresh(k id, r *rand.Rand) *kates.Unstructured {
	u := object(resourceOf(k), k.ns, k.name, map[string]string{"run": w.label, "in": fmt.Sprint(r.IntN(2))})
	if r.IntN(5) == 0 {
		u.SetFinalizers([]string{"example.com/f"})
	}
	switch k.resource {
	case "pods":
		spec := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}
		if node := r.IntN(3); node > 0 {
			spec["nodeName"] = fmt.Sprint("n", node)
		}
		u.Object["spec"] = spec
	case "hosts":
		u.Object["spec"] = map[string]any{"hostname": []string{"yes", "no"}[r.IntN(2)]}
	}
	return u
}

// own makes random writes until ctx ends. Its writes run to their end, so that their effect is
// known. Some are cancelled early, and their outcome is unknown.
func (w *world) own(ctx context.Context, t *testing.T, r *rand.Rand) {
	var generated []id
	var missing *id
	for ctx.Err() == nil {
		k, verb := w.pick(r), ownVerbs[r.IntN(len(ownVerbs))]
		if missing != nil { // most verbs need an existing object
			k, verb = *missing, ownVerbs[0]
		}
		missing = nil
		call, cancel := context.Background(), context.CancelFunc(func() {})
		hurried := r.IntN(20) == 0
		if hurried {
			call, cancel = context.WithTimeout(call, time.Duration(r.IntN(6000))*time.Microsecond)
		}
		_, afterRV := w.known()
		unsettled := w.unsettledNow()
		var got *kates.Unstructured
		o := ownWrite{w: w, ctx: call, id: k, r: r, generated: &generated, got: &got}
		ended := w.ledger.begin(&o, verb.name)
		err := verb.do(&o)
		cancel()
		ended(err)
		switch {
		case hurried:
		case err != nil && w.faulty != nil && w.faulty(err), err == nil && w.unsettledNow() != unsettled:
			w.lose()
			pause(ctx, 20*time.Millisecond) // otherwise this would be most of what happens
		case err == nil:
			w.learn(verb.name, o, got, afterRV)
		case w.excuses != nil && w.excuses(err):
			pause(ctx, 20*time.Millisecond)
		case !excused(err):
			t.Errorf("%s of %v: %v", verb.name, k, err)
		case kates.IsNotFound(err):
			missing = &k
		}
	}
}

// lose counts a write of unknown outcome.
func (w *world) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost++
}

func (w *world) unsettledNow() int {
	if w.unsettled == nil {
		return 0
	}
	return w.unsettled()
}

// excused reports whether another writer may have caused the error.
func excused(err error) bool {
	return kates.IsNotFound(err) || apierrors.IsAlreadyExists(err) || kates.IsConflict(err) || apierrors.IsInvalid(err)
}

// learn records a write, based on the server's answer.
func (w *world) learn(verb string, o ownWrite, got *kates.Unstructured, afterRV uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[verb]++
	entry := written{verb: verb, id: o.id, uid: o.uid, afterRV: afterRV}
	switch {
	case o.nothing:
		return
	case got == nil || got.GetUID() == "": // a deletion, answered by a Status
		entry.bare = true
	case o.deletes && got.GetDeletionTimestamp() == nil, got.GetDeletionTimestamp() != nil && !keeps(got):
		entry.uid = got.GetUID()
	default:
		entry.objectRV, entry.uid = number(got.GetResourceVersion()), got.GetUID()
		w.newestRV = max(w.newestRV, entry.objectRV)
	}
	if got != nil && got.GetName() != "" {
		entry.id.name = got.GetName() // the server may have chosen it
	}
	w.record = append(w.record, entry)
}

// keeps reports whether something keeps a terminating object.
func keeps(u *kates.Unstructured) bool {
	grace := u.GetDeletionGracePeriodSeconds()
	return len(u.GetFinalizers()) > 0 || grace != nil && *grace > 0
}

// number turns a version into a number, which only tests may do.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// foreign is another program that writes the same objects.
func (w *world) foreign(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		k := w.pick(r)
		in := w.others.Resource(resourceOf(k)).Namespace(k.ns)
		patch := fmt.Sprintf(`{"metadata":{"labels":{"in":"%d","n":"%d"}}}`, r.IntN(2), r.IntN(1000))
		switch r.IntN(8) { // other writers cause the errors
		case 0, 1:
			_, _ = in.Create(ctx, w.fresh(k, r), metav1.CreateOptions{})
		case 2:
			_ = in.Delete(ctx, k.name, metav1.DeleteOptions{})
		case 3:
			patch = []string{`{"metadata":{"finalizers":null}}`, `{"metadata":{"finalizers":["example.com/g"]}}`}[r.IntN(2)]
		case 4:
			made := w.fresh(k, r)
			made.SetName("")
			made.SetGenerateName("theirs-")
			if made, err := in.Create(ctx, made, metav1.CreateOptions{}); err == nil {
				k.name = made.GetName()
				pause(ctx, time.Duration(r.IntN(100))*time.Millisecond)
				_, _ = in.Patch(ctx, k.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				_ = in.Delete(ctx, k.name, metav1.DeleteOptions{})
			}
		case 5:
			w.moveByField(ctx, in, k, r)
		}
		_, _ = in.Patch(ctx, k.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		pause(ctx, time.Duration(r.IntN(5))*time.Millisecond)
	}
}

// moveByField changes a field that queries select by.
func (w *world) moveByField(ctx context.Context, in dynamic.ResourceInterface, k id, r *rand.Rand) {
	if k.resource == "pods" {
		patch := fmt.Sprintf(`{"status":{"phase":%q}}`, []string{"Running", "Pending"}[r.IntN(2)])
		_, _ = in.Patch(ctx, k.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return
	}
	if k.resource != "hosts" {
		return
	}
	patch := fmt.Sprintf(`{"spec":{"hostname":%q}}`, []string{"yes", "no"}[r.IntN(2)])
	_, _ = in.Patch(ctx, k.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
}

// kubelet ends the pods on nodes whose deletion is graceful, as if their processes had ended.
func (w *world) kubelet(ctx context.Context, r *rand.Rand) {
	now := int64(0)
	for ctx.Err() == nil {
		in := w.others.Resource(pods).Namespace(w.namespaces[r.IntN(2)])
		list, err := in.List(ctx, metav1.ListOptions{})
		if err == nil {
			for i := range list.Items {
				o := &list.Items[i]
				uid := o.GetUID()
				node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
				if o.GetDeletionTimestamp() != nil && node != "" && r.IntN(2) == 0 {
					_ = in.Delete(ctx, o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}})
				}
			}
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
