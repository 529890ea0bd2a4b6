package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/kates"
)

// spy counts the requests for a resource, and can do something before the next request of a verb.
type spy struct {
	mu     sync.Mutex
	counts map[string]int
	next   map[string]func()
	lists  []string // label selectors
}

func newSpy(w *wire, resource string) *spy {
	s := &spy{counts: map[string]int{}, next: map[string]func(){}}
	w.hookBefore(func(r *http.Request) error {
		verb, q := r.Method, r.URL.Query()
		// there may be pages with objects of other tests
		if q.Get("watch") != "" || q.Get("sendInitialEvents") != "" || q.Get("continue") != "" ||
			!strings.Contains(r.URL.Path+"/", "/"+resource+"/") {
			return nil
		}
		if verb == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+resource) {
			verb = "LIST"
		}
		s.mu.Lock()
		if verb == "LIST" && q.Get("labelSelector") == "" {
			verb = "other" // of Sync and of the history
		} else {
			s.counts[verb]++
		}
		do := s.next[verb]
		delete(s.next, verb)
		if verb == "LIST" {
			s.lists = append(s.lists, q.Get("labelSelector"))
		}
		s.mu.Unlock()
		if do != nil {
			do()
		}
		return nil
	})
	return s
}

// seen returns the requests since its last call.
func (s *spy) seen() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.counts
	s.counts, s.lists = map[string]int{}, nil
	return was
}

// before calls do before the next request of the verb.
func (s *spy) before(verb string, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[verb] = do
}

// ownedTest has a client, the owner of a set of config maps, and another program.
type ownedTest struct {
	*testing.T
	w      *wire
	client *kates.Client
	spy    *spy
	ns     string
	root   *kates.Unstructured
	others dynamic.ResourceInterface
}

func newOwnedTest(t *testing.T) *ownedTest {
	t.Parallel()
	o := &ownedTest{T: t, w: newWire(t), ns: namespace(t)}
	o.client = o.w.client(t, kates.WithNamespace(o.ns))
	o.others = foreign(t).Resource(configMaps).Namespace(o.ns)
	o.root = o.owner("root")
	o.spy = newSpy(o.w, "configmaps")
	return o
}

func (o *ownedTest) owner(name string) (root *kates.Unstructured) {
	o.Helper()
	require.NoError(o, o.client.Create(o.Context(), object(hosts, o.ns, name, nil), &root))
	return root
}

func (o *ownedTest) configMap(name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: named(o.ns, name), Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		cm.Data[data[i]] = data[i+1]
	}
	return cm
}

func (o *ownedTest) set(objects ...kates.Object) kates.OwnedSet {
	return kates.OwnedSet{Owner: o.root, SetName: "e2e", Objects: objects, Kinds: []string{"configmaps"}}
}

func (o *ownedTest) apply(set kates.OwnedSet, opts ...kates.WriteOption) kates.OwnedResult {
	o.Helper()
	result, err := o.client.ApplyOwned(o.Context(), set, opts...)
	require.NoError(o, err)
	return result
}

func (o *ownedTest) stored(name string) *kates.Unstructured {
	o.Helper()
	u, err := o.others.Get(o.Context(), name, metav1.GetOptions{})
	if kates.IsNotFound(err) {
		return nil
	}
	require.NoError(o, err)
	return u
}

// patch is another program's write.
func (o *ownedTest) patch(name, patch string) {
	o.Helper()
	_, err := o.others.Patch(context.Background(), name, kates.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "others"})
	assert.NoError(o, err)
}

// make creates an object as another program.
func (o *ownedTest) make(name string, data map[string]any, owners ...kates.Object) {
	o.Helper()
	u := object(configMaps, o.ns, name, nil)
	u.Object["data"] = data
	for _, owner := range owners {
		assert.NoError(o, kates.SetControllerReference(owner, u))
	}
	_, err := o.others.Create(context.Background(), u, metav1.CreateOptions{FieldManager: "others"})
	assert.NoError(o, err)
}

func (o *ownedTest) remove(name string) {
	o.Helper()
	assert.NoError(o, o.others.Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// watch runs a watch of the config maps.
func (o *ownedTest) watch(options ...kates.Query) {
	o.Helper()
	q := kates.Query{Kind: "cm", Namespace: o.ns}
	if len(options) > 0 {
		q = options[0]
	}
	r, err := kates.NewLister[*kates.Unstructured](o.Context(), o.client, q)
	require.NoError(o, err)
	o.Cleanup(r.Close)
	o.spy.seen()
}

// same checks that an object is unchanged, its version included.
func (o *ownedTest) same(was, is *kates.Unstructured) {
	o.Helper()
	for _, u := range []*kates.Unstructured{was, is} {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
		unstructured.RemoveNestedField(u.Object, "metadata", "resourceVersion")
	}
	assert.Equal(o, was.Object, is.Object)
}

func TestApplyOwnedSendsNothingWhereNothingWouldChange(t *testing.T) {
	o := newOwnedTest(t)
	o.watch()
	a := o.set(o.configMap("a", "k", "v"), o.configMap("b", "k", "v"))
	o.apply(a)
	assert.Equal(t, map[string]int{"PATCH": 2}, o.spy.seen())
	assert.Len(t, o.apply(a).Unchanged, 2)
	require.NoError(t, o.client.Sync(t.Context()))
	assert.Len(t, o.apply(a).Unchanged, 2)
	assert.Empty(t, o.spy.seen(), "neither before nor after the watch has brought them")

	o.patch("a", `{"metadata":{"labels":{"new":"label"}}}`)
	require.NoError(t, o.client.Sync(t.Context()))
	assert.Len(t, o.apply(a).Unchanged, 2)
	assert.Empty(t, o.spy.seen(), "what changed is none of its business")

	o.patch("a", `{"data":{"k":"drifted"}}`)
	require.NoError(t, o.client.Sync(t.Context()))
	_, err := o.client.ApplyOwned(t.Context(), a)
	assert.True(t, kates.IsConflict(err), "%v", err)
	assert.Len(t, o.apply(a, kates.ForceOwnership()).Applied, 1)
	assert.Equal(t, "v", o.stored("a").Object["data"].(map[string]any)["k"])
	o.spy.seen()

	// The value changes there and back. The content is the same, but the field has another owner
	// now.
	o.apply(a, kates.ForceOwnership())
	assert.Len(t, o.apply(a, kates.ForceOwnership()).Unchanged, 2)
	o.spy.seen()
	o.patch("a", `{"data":{"k":"drifted"}}`)
	o.patch("a", `{"data":{"k":"v"}}`)
	require.NoError(t, o.client.Sync(t.Context()))
	assert.Len(t, o.apply(a, kates.ForceOwnership()).Applied, 1, "it is taken back")
	assert.Equal(t, map[string]int{"PATCH": 1}, o.spy.seen())
}

func TestApplyOwnedSendsNothingForAChangeOfTheStatusNorWithAWatchOfLess(t *testing.T) {
	o := newOwnedTest(t)
	o.spy = newSpy(o.w, "deployments")
	d := deployment(o.ns)
	a := o.set(d)
	a.Kinds = nil
	o.watch(kates.Query{Kind: "deploy", Namespace: o.ns})
	o.apply(a)
	assert.Equal(t, map[string]int{"PATCH": 1}, o.spy.seen())
	for range 2 {
		_, err := foreign(t).Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(o.ns).Patch(t.Context(), "x", kates.MergePatchType,
			[]byte(`{"status":{"observedGeneration":1,"replicas":3}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		require.NoError(t, o.client.Sync(t.Context()))
		assert.Len(t, o.apply(a).Unchanged, 1)
		assert.Empty(t, o.spy.seen())
	}

	p := newWire(t) // another client, whose watch drops managed fields
	c := p.client(t, kates.WithTransform(kates.DropManagedFields))
	o.client, o.spy = c, newSpy(p, "deployments")
	o.watch(kates.Query{Kind: "deploy", Namespace: o.ns})
	o.apply(a)
	assert.Equal(t, map[string]int{"GET": 1, "LIST": 1}, o.spy.seen(), "the server's answer tells what was applied, and whose it is")
	a.Existing = []kates.Object{}
	o.apply(a)
	assert.Empty(t, o.spy.seen(), "the version suffices")
}

func TestApplyOwnedWithoutAWatchListsNoMoreThanTheSet(t *testing.T) {
	o := newOwnedTest(t)
	o.make("somebody-elses", nil)
	o.apply(o.set(o.configMap("a"), o.configMap("b")))
	assert.Equal(t, map[string]int{"GET": 2, "PATCH": 2, "LIST": 1}, o.spy.seen())
	o.apply(o.set(o.configMap("a"), o.configMap("b")))
	o.spy.mu.Lock()
	assert.Equal(t, []string{kates.OwnedSetLabel + "=e2e." + string(o.root.GetUID())}, o.spy.lists)
	o.spy.mu.Unlock()
	assert.Equal(t, map[string]int{"GET": 2, "LIST": 1}, o.spy.seen(), "the server says that they are at the version that was applied")
	assert.Len(t, o.apply(o.set(o.configMap("a"))).Pruned, 1)
	assert.Equal(t, map[string]int{"GET": 1, "LIST": 1, "DELETE": 1}, o.spy.seen())
	o.watch()
	o.apply(o.set(o.configMap("a")))
	assert.Empty(t, o.spy.seen())
}

func TestApplyOwnedLeavesFieldsOfOtherManagersUnlessForced(t *testing.T) {
	o := newOwnedTest(t)
	o.apply(o.set(o.configMap("a", "k", "v"), o.configMap("b")))
	o.patch("a", `{"data":{"k":"theirs","more":"theirs"}}`)
	was := o.stored("a")
	result, err := o.client.ApplyOwned(t.Context(), o.set(o.configMap("a", "k", "v"), o.configMap("c")))
	require.True(t, kates.IsConflict(err), "%v", err)
	assert.ErrorContains(t, err, o.ns+"/a")
	assert.ErrorContains(t, err, "others", "with whom")
	o.same(was, o.stored("a"))
	assert.Equal(t, []string{"c"}, referred(result.Applied))
	assert.Equal(t, []string{"b"}, referred(result.Pruned), "the rest is done")
	o.apply(o.set(o.configMap("a", "k", "v")), kates.ForceOwnership())
	assert.Equal(t, map[string]any{"k": "v", "more": "theirs"}, o.stored("a").Object["data"])
	o.apply(o.set(o.configMap("a")), kates.ForceOwnership())
	assert.Equal(t, map[string]any{"more": "theirs"}, o.stored("a").Object["data"], "what is no longer applied goes")
}

func referred(references []kates.ObjectReference) (all []string) {
	for _, r := range references {
		all = append(all, r.Name)
	}
	return all
}

func TestApplyOwnedDryRunLeavesNoTrace(t *testing.T) {
	o := newOwnedTest(t)
	o.watch()
	o.apply(o.set(o.configMap("a")))
	result := o.apply(o.set(o.configMap("b")), kates.DryRun())
	assert.Equal(t, []string{"b"}, referred(result.Applied))
	assert.Equal(t, []string{"a"}, referred(result.Pruned))
	assert.Nil(t, o.stored("b"))
	assert.NotNil(t, o.stored("a"))
	assert.Len(t, o.apply(o.set(o.configMap("b"))).Applied, 1)
}
