package kates_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// pruning is a server with an owner and some config maps, of which an owned set wants none.
type pruning struct {
	other, client *kates.Client
	wire          *onItsWay
	set           kates.OwnedSet
}

// prunable is a config map of the set.
func prunable(name string) *kates.ConfigMap {
	m := inNamespace("default", name)
	m.Labels = map[string]string{kates.OwnedSetLabel: "set.root"}
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "root", UID: "root", Controller: new(true)}}
	return m
}

func coOwner(name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: types.UID(name)}
}

func newPruning(t *testing.T, objects ...kates.Object) *pruning {
	t.Helper()
	server := katestest.NewServer(t, katestest.WithoutControllers(), katestest.WithObjects(objects...))
	p := &pruning{other: server.Client(t), wire: &onItsWay{}}
	config := rest.CopyConfig(server.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { p.wire.next = next; return p.wire })
	var err error
	p.client, err = kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	t.Cleanup(p.client.Close)
	root := inNamespace("default", "root")
	root.UID = "root" // it need not be on the server
	p.set = kates.OwnedSet{Owner: root, SetName: "set", Kinds: []string{"configmaps"}}
	return p
}

// left are the names of the config maps that are there.
func (p *pruning) left(t *testing.T) (names []string) {
	t.Helper()
	for _, m := range p.all(t) {
		names = append(names, m.GetName())
	}
	return names
}

func (p *pruning) all(t *testing.T) (objects []kates.Object) {
	t.Helper()
	var maps []*kates.ConfigMap
	require.NoError(t, p.other.List(t.Context(), kates.Query{Kind: "configmaps"}, &maps))
	for _, m := range maps {
		objects = append(objects, m)
	}
	return objects
}

// othersObjects are some that lack one of the conditions each.
func othersObjects() (all []kates.Object) {
	for name, change := range map[string]func(*kates.ConfigMap){
		"o-no-label":     func(m *kates.ConfigMap) { m.Labels = nil },
		"o-other-set":    func(m *kates.ConfigMap) { m.Labels[kates.OwnedSetLabel] = "other.root" },
		"o-other-root":   func(m *kates.ConfigMap) { m.Labels[kates.OwnedSetLabel] = "set.other" },
		"o-no-owner":     func(m *kates.ConfigMap) { m.OwnerReferences = nil },
		"o-former-owner": func(m *kates.ConfigMap) { m.OwnerReferences[0].UID = "former" },
		"o-elsewhere":    func(m *kates.ConfigMap) { m.Namespace = "kube-public" },
	} {
		m := prunable(name)
		change(m)
		all = append(all, m)
	}
	return all
}

// TestASetPrunesWhatMeetsEveryConditionAndNothingElse: whether it has to look for the objects, or
// is told which there are.
func TestASetPrunesWhatMeetsEveryConditionAndNothingElse(t *testing.T) {
	for name, existing := range map[string]bool{"searched": false, "given": true} {
		t.Run(name, func(t *testing.T) {
			shared := prunable("shared")
			shared.OwnerReferences = append(shared.OwnerReferences, coOwner("p"))
			p := newPruning(t, append(othersObjects(), prunable("a"), prunable("b"), shared)...)
			before := p.left(t)
			set := p.set
			if existing {
				set.Existing = slices.Repeat(p.all(t), 2) // it may have an object twice
			}
			result, err := p.client.ApplyOwned(t.Context(), set, kates.DryRun())
			require.NoError(t, err)
			assert.Equal(t, []string{"a", "b"}, ofResult(result.Pruned))
			assert.Equal(t, before, p.left(t), "a dry run")
			var still *kates.ConfigMap
			require.NoError(t, p.other.Get(t.Context(), shared, &still))
			assert.Len(t, still.OwnerReferences, 2, "a dry run")

			result, err = p.client.ApplyOwned(t.Context(), set)
			require.NoError(t, err)
			assert.Equal(t, []string{"a", "b"}, ofResult(result.Pruned))
			assert.Equal(t, []string{"shared"}, ofResult(result.Released))
			assert.Equal(t, slices.DeleteFunc(before, func(n string) bool { return n == "a" || n == "b" }), p.left(t))
			require.NoError(t, p.other.Get(t.Context(), shared, &still))
			assert.Equal(t, []metav1.OwnerReference{coOwner("p")}, still.OwnerReferences)
			assert.Empty(t, still.Labels)
		})
	}
}

// TestASetPrunesNothingUnlessWhatIsWantedIsCertain: the wanted objects are not certain, or nobody
// wants
// pruning.
func TestASetPrunesNothingUnlessWhatIsWantedIsCertain(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*kates.OwnedSet)
		pruned bool
		fails  bool
	}{
		"all is well":         {func(s *kates.OwnedSet) { s.Objects = []kates.Object{configMap("new")} }, true, false},
		"an unknown kind":     {func(s *kates.OwnedSet) { s.Objects = []kates.Object{kates.NewUnstructured("No", "example.com/v1")} }, false, true},
		"no name":             {func(s *kates.OwnedSet) { s.Objects = []kates.Object{configMap("")} }, false, true},
		"one is there twice":  {func(s *kates.OwnedSet) { s.Objects = []kates.Object{configMap("new"), configMap("new")} }, false, true},
		"the owner itself":    {func(s *kates.OwnedSet) { s.Objects = []kates.Object{configMap("root")} }, false, true},
		"nil":                 {func(s *kates.OwnedSet) { s.Objects = []kates.Object{nil} }, false, true},
		"it is wanted":        {func(s *kates.OwnedSet) { s.Objects = []kates.Object{configMap("old")} }, false, false},
		"none are given":      {func(s *kates.OwnedSet) { s.Existing = []kates.Object{} }, false, false},
		"no kinds":            {func(s *kates.OwnedSet) { s.Kinds = nil }, false, false},
		"the kind of another": {func(s *kates.OwnedSet) { s.Kinds, s.Objects = nil, []kates.Object{configMap("new")} }, true, false},
		"another unknown kind to search": {func(s *kates.OwnedSet) {
			s.Kinds = []string{"no-such-kind", "configmaps"}
		}, true, true},
		"a kind without namespaces to search": {func(s *kates.OwnedSet) { s.Kinds = []string{"namespaces", "configmaps"} }, true, true},
		"the owner is being deleted": {func(s *kates.OwnedSet) {
			s.Owner.(*kates.ConfigMap).DeletionTimestamp = &now
		}, false, true},
		"no UID of the owner": {func(s *kates.OwnedSet) { s.Owner.(*kates.ConfigMap).UID = "" }, false, true},
		"another label":       {func(s *kates.OwnedSet) { s.Label = "example.com/set" }, false, false},
		"no name of the set":  {func(s *kates.OwnedSet) { s.SetName = "" }, false, true},
		"an object fails": {func(s *kates.OwnedSet) {
			s.Objects = []kates.Object{configMap("theirs"), configMap("new")}
		}, true, true},
		"an object fails, and pruning is held": {func(s *kates.OwnedSet) {
			s.Objects, s.HoldPruning = []kates.Object{configMap("theirs"), configMap("new")}, true
		}, false, true},
		"an object may not be owned, and pruning is held": {func(s *kates.OwnedSet) {
			s.Objects, s.HoldPruning = []kates.Object{inNamespace("kube-public", "new")}, true
		}, false, true},
		"pruning is held for nothing": {func(s *kates.OwnedSet) {
			s.Objects, s.HoldPruning = []kates.Object{configMap("new")}, true
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPruning(t, prunable("old"), inNamespace("default", "theirs"))
			test.change(&p.set)
			result, err := p.client.ApplyOwned(t.Context(), p.set, kates.ForceOwnership())
			assert.Equal(t, test.fails, err != nil, "%v", err)
			assert.Equal(t, test.pruned, !slices.Contains(p.left(t), "old"))
			assert.Equal(t, test.pruned, len(result.Pruned) == 1)
			assert.Contains(t, p.left(t), "theirs")
		})
	}
}

func TestASetPrunesNothingAfterItsContextHasEnded(t *testing.T) {
	p := newPruning(t, prunable("old"))
	p.set.Objects, p.set.InOrder = []kates.Object{configMap("new"), configMap("newer")}, true
	ctx, cancel := context.WithCancel(t.Context())
	p.wire.before = cancel // with the first apply
	_, err := p.client.ApplyOwned(ctx, p.set)
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, p.left(t), "old")
	assert.Equal(t, int32(1), p.wire.writes.Load())
}

// TestAnObjectThatChangesBeforeItIsPrunedIsCheckedAgain: the deletion is on its way by then.
func TestAnObjectThatChangesBeforeItIsPrunedIsCheckedAgain(t *testing.T) {
	patched := func(patch string) func(*testing.T, *pruning) {
		return func(t *testing.T, p *pruning) {
			assert.NoError(t, p.other.Patch(t.Context(), prunable("old"), kates.MergePatchType, []byte(patch), nil))
		}
	}
	for name, test := range map[string]struct {
		meanwhile func(*testing.T, *pruning)
		want      string
		deletions int // that are tried
	}{
		"nothing":            {func(*testing.T, *pruning) {}, "pruned", 1},
		"its content":        {patched(`{"data":{"k":"v"}}`), "pruned", 2},
		"its label is gone":  {patched(`{"metadata":{"labels":null}}`), "left", 1},
		"its owner is gone":  {patched(`{"metadata":{"ownerReferences":null}}`), "left", 1},
		"another owner":      {patched(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"p"}]}}`), "left", 1},
		"another owner, too": {patched(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"root","uid":"root"},{"apiVersion":"v1","kind":"Pod","name":"p","uid":"p"}]}}`), "released", 1},
		"it is deleted":      {func(t *testing.T, p *pruning) { assert.NoError(t, p.other.Delete(t.Context(), prunable("old"), nil)) }, "pruned", 1},
		"it is made anew": {func(t *testing.T, p *pruning) {
			assert.NoError(t, p.other.Delete(t.Context(), prunable("old"), nil))
			assert.NoError(t, p.other.Create(t.Context(), prunable("old"), nil))
		}, "replaced", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPruning(t, prunable("old"))
			var once sync.Once
			var methods []string
			p.wire.sees = func(method, _ string) { methods = append(methods, method) }
			p.wire.before = func() { once.Do(func() { test.meanwhile(t, p) }) }
			result, err := p.client.ApplyOwned(t.Context(), p.set)
			require.NoError(t, err)
			outcome := "left"
			switch left := slices.Contains(p.left(t), "old"); {
			case len(result.Released) == 1 && left:
				outcome = "released"
			case len(result.Pruned) == 1 && !left:
				outcome = "pruned"
			case len(result.Pruned) == 1: // the one that was checked
				outcome = "replaced"
			}
			assert.Equal(t, test.want, outcome)
			if outcome == "released" {
				var now *kates.ConfigMap
				require.NoError(t, p.other.Get(t.Context(), prunable("old"), &now))
				assert.Equal(t, []metav1.OwnerReference{coOwner("p")}, now.OwnerReferences)
			}
			deletions := slices.DeleteFunc(methods, func(m string) bool { return m != http.MethodDelete })
			assert.Len(t, deletions, test.deletions)
		})
	}
}

// TestAnObjectIsReleasedOnlyIfItStillBelongsToTheSetAndToOthers: it may have changed meanwhile.
func TestAnObjectIsReleasedOnlyIfItStillBelongsToTheSetAndToOthers(t *testing.T) {
	for name, test := range map[string]struct {
		patch    string
		released bool
	}{
		"its content":             {`{"data":{"k":"v"}}`, true},
		"its label is gone":       {`{"metadata":{"labels":null}}`, false},
		"the other owner is gone": {`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"root","uid":"root"}]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			shared := prunable("shared")
			shared.OwnerReferences = append(shared.OwnerReferences, coOwner("p"))
			p := newPruning(t, shared)
			var once sync.Once
			p.wire.before = func() {
				once.Do(func() {
					assert.NoError(t, p.other.Patch(t.Context(), shared, kates.MergePatchType, []byte(test.patch), nil))
				})
			}
			result, err := p.client.ApplyOwned(t.Context(), p.set)
			require.NoError(t, err)
			assert.Equal(t, test.released, len(result.Released) == 1)
			assert.Empty(t, result.Pruned)
			var now *kates.ConfigMap
			require.NoError(t, p.other.Get(t.Context(), shared, &now))
			assert.Equal(t, test.released, now.OwnerReferences[0].UID != "root", "its reference to the owner")
		})
	}
}

// TestAnObjectThatKeepsChangingIsAConflictInTheEnd: it is not deleted whatever it has become.
func TestAnObjectThatKeepsChangingIsAConflictInTheEnd(t *testing.T) {
	p := newPruning(t, prunable("old"))
	p.wire.before = func() {
		var m *kates.ConfigMap
		assert.NoError(t, p.other.Patch(t.Context(), prunable("old"), kates.MergePatchType, []byte(`{"metadata":{"labels":{"again":"`+string(rune('a'+p.wire.writes.Load()))+`"}}}`), &m))
	}
	_, err := p.client.ApplyOwned(t.Context(), p.set)
	require.True(t, kates.IsConflict(err), "%v", err)
	assert.Equal(t, []string{"old"}, p.left(t))
	assert.Equal(t, int32(5), p.wire.writes.Load())
}

// TestWhatASetPrunesGoesWithItsDependents: the default of some kinds leaves them.
func TestWhatASetPrunesGoesWithItsDependents(t *testing.T) {
	for want, opts := range map[string][]kates.WriteOption{
		"Background": nil, "Orphan": {kates.Propagation(metav1.DeletePropagationOrphan)},
	} {
		p := newPruning(t, prunable("old"))
		var body string
		p.wire.sees = func(_, b string) { body += b }
		_, err := p.client.ApplyOwned(t.Context(), p.set, opts...)
		require.NoError(t, err)
		assert.Contains(t, body, `"propagationPolicy":"`+want+`"`)
		assert.Contains(t, body, `"preconditions":{"uid":"`, "it is that very object")
		assert.Contains(t, body, `"resourceVersion":"`, "in that very version")
	}
}
