package kates_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// brief is what a program may want of a ConfigMap.
type brief struct {
	Metadata struct {
		Name    string `json:"name"`
		Version string `json:"resourceVersion"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

type briefs struct {
	Maps    []*brief `kates:"configmaps"`
	Deltas  []*kates.Delta
	Invalid []kates.Invalid
}

func briefNames(all []*brief) (names []string) {
	for _, b := range all {
		names = append(names, b.Metadata.Name+"@"+b.Metadata.Version)
	}
	return names
}

func TestG8AProjectionThatDoesNotDecodeOnTheWireIsLeftOutByItselfAndHeals(t *testing.T) {
	for form, protobuf := range map[string]bool{"fields from protobuf": true, "fields from json": false} {
		t.Run(form, func(t *testing.T) {
			s := &wireServer{protobuf: protobuf, objects: []any{versioned("a", "5"), broken{versioned("bad", "6")}, versioned("z", "7")}}
			c := s.client(t)
			w, err := kates.Watch[briefs](t.Context(), c, kates.Query{Name: "Maps", LabelSelector: "in=yes"})
			require.NoError(t, err)
			var snap briefs
			next(t, w, &snap, func() bool { return true })
			assert.Equal(t, []string{"a@5", "z@7"}, briefNames(snap.Maps))
			assert.Equal(t, map[string]string{"k": "v"}, snap.Maps[0].Data)
			assert.Equal(t, form, w.Status().Queries[0].Form)
			require.Len(t, snap.Invalid, 1)
			o := snap.Invalid[0].Object
			assert.Equal(t, "v1/ConfigMap ns/bad uid-bad 6", o.GetAPIVersion()+"/"+o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()+" "+string(o.GetUID())+" "+o.GetResourceVersion())
			require.ErrorContains(t, snap.Invalid[0].Err, `convert ConfigMap "ns/bad" to *kates_test.brief`)

			reader, err := kates.NewLister[*brief](t.Context(), c, kates.Query{Kind: "cm", LabelSelector: "in=yes"})
			require.NoError(t, err)
			defer reader.Close()
			_, err = reader.Get("ns", "bad")
			require.ErrorContains(t, err, "convert ConfigMap")
			some, err := reader.List("", nil)
			require.ErrorContains(t, err, "convert ConfigMap")
			assert.Equal(t, []string{"a@5", "z@7"}, briefNames(some))
			some, err = reader.List("ns", labels.SelectorFromSet(labels.Set{"in": "yes"}))
			require.ErrorContains(t, err, "convert ConfigMap", "its labels are known")
			assert.Equal(t, []string{"a@5", "z@7"}, briefNames(some))

			some, err = reader.List("ns", labels.SelectorFromSet(labels.Set{"in": "no"}))
			require.NoError(t, err, "it has another label")
			assert.Empty(t, some)

			s.send("MODIFIED", versioned("bad", "8"))
			next(t, w, &snap, func() bool { return len(snap.Invalid) == 0 })
			assert.Equal(t, []string{"a@5", "bad@8", "z@7"}, briefNames(snap.Maps))
			require.Len(t, snap.Deltas, 1)
			d := snap.Deltas[0]
			assert.Equal(t, "add v1/ConfigMap ns/bad uid-bad 8", d.DeltaType.String()+" "+d.APIVersion+"/"+d.Kind+" "+d.Namespace+"/"+d.Name+" "+string(d.UID)+" "+d.ResourceVersion)
			s.send("MODIFIED", broken{versioned("a", "9")})
			next(t, w, &snap, func() bool { return len(snap.Invalid) == 1 })
			assert.Equal(t, []string{"bad@8", "z@7"}, briefNames(snap.Maps))
			s.send("DELETED", broken{versioned("a", "10")})
			next(t, w, &snap, func() bool { return len(snap.Invalid) == 0 })
			assert.Zero(t, w.Status().Queries[0].Restarts)
		})
	}
}

// form returns the form of the objects of a query of ConfigMaps into S.
func formOf[S any](t *testing.T, q kates.Query, options ...kates.Option) string {
	t.Helper()
	s := &wireServer{objects: []any{versioned("a", "5")}}
	w, err := kates.Watch[S](t.Context(), s.client(t, append(options, kates.Tuning{Lists: kates.PagedLists})...), q)
	require.NoError(t, err)
	next(t, w, new(S), func() bool { return true })
	return w.Status().Queries[0].Form
}

// own decodes itself.
type own struct{ text string }

func (o *own) UnmarshalJSON(text []byte) error { o.text = string(text); return nil }

// managed has managedFields.
type managed struct {
	kates.ObjectMeta `json:"metadata"`
}

func TestAWatchHoldsTheFieldsOfAStructWhereNothingElseIsWanted(t *testing.T) {
	const fields = "fields from json" // as the server of this test has it
	q := kates.Query{Name: "Maps", Kind: "configmaps"}
	with := func(change func(*kates.Query)) kates.Query {
		other := q
		change(&other)
		return other
	}
	type lookup struct {
		Maps kates.Lookup[*brief] `kates:"cm"`
	}
	assert.Equal(t, fields, formOf[briefs](t, q))
	assert.Equal(t, fields, formOf[struct{ Maps []brief }](t, q))
	assert.Equal(t, fields, formOf[struct{ Maps map[string]*brief }](t, q))
	assert.Equal(t, fields, formOf[struct{ Maps map[types.UID]brief }](t, q))
	assert.Equal(t, fields, formOf[struct{ Maps struct{ Items []brief } }](t, q))
	assert.Equal(t, fields, formOf[lookup](t, q))
	key := kates.KeyOf(func(b *brief) []string { return []string{b.Data["k"]} })
	assert.Equal(t, fields, formOf[briefs](t, with(func(q *kates.Query) { q.Key = key })))
	byValue := kates.SignalOf(func(old, current *kates.Unstructured) bool { return true })
	assert.Empty(t, formOf[briefs](t, with(func(q *kates.Query) { q.Signal = byValue })), "it may want anything")
	for _, key := range []kates.Key{kates.ByLabel("in"), kates.ByNamespace, kates.ByName, kates.ByNamespacedName, kates.ByUID} {
		assert.Equal(t, fields, formOf[briefs](t, with(func(q *kates.Query) { q.Key = key })))
	}
	assert.Equal(t, fields, formOf[briefs](t, with(func(q *kates.Query) { q.Signal = kates.LabelsChanged })))
	assert.Equal(t, fields, formOf[briefs](t, with(func(q *kates.Query) { q.Key = kates.KeyOf(func(metav1.Object) []string { return nil }) })))
	both := kates.AnySignal(kates.LabelsChanged, kates.SignalOf(func(_, _ *brief) bool { return true }))
	assert.Equal(t, fields, formOf[briefs](t, with(func(q *kates.Query) { q.Signal = both })))
	some := kates.AnySignal(kates.LabelsChanged, byValue)
	assert.Empty(t, formOf[briefs](t, with(func(q *kates.Query) { q.Signal = some })), "it may want anything")
	assert.Empty(t, formOf[briefs](t, with(func(q *kates.Query) { q.Transform = kates.DropFields("data") })))
	assert.Equal(t, fields, formOf[briefs](t, q, kates.WithTransform(kates.DropManagedFields)))
	assert.Empty(t, formOf[struct{ Maps []managed }](t, q, kates.WithTransform(kates.DropManagedFields)))
	assert.Equal(t, fields, formOf[struct{ Maps []managed }](t, q))
	assert.Empty(t, formOf[briefs](t, q, kates.Tuning{UntypedStreams: true}))
	assert.Empty(t, formOf[struct{ Maps []map[string]any }](t, q))
	assert.Empty(t, formOf[struct{ Maps []json.RawMessage }](t, q))
	assert.Empty(t, formOf[struct{ Maps []*kates.Unstructured }](t, q))
	assert.Empty(t, formOf[struct{ Maps []*own }](t, q))
	assert.Equal(t, "typed from json", formOf[struct{ Maps []*kates.ConfigMap }](t, q))
}

// TestFunctionsOfThePackageGetTheFieldsThatTheyReadBesideThoseOfAStruct: of the metadata, nothing
// else is held. Any other field needs the whole object.
func TestFunctionsOfThePackageGetTheFieldsThatTheyReadBesideThoseOfAStruct(t *testing.T) {
	type lite struct {
		Spec struct {
			NodeName   string `json:"nodeName"`
			Containers []struct {
				Image string `json:"image"`
			} `json:"containers"`
		} `json:"spec"`
	}
	type lites struct {
		Pods []*lite `kates:"pods"`
	}
	pod := fullPod("a", "n1")
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "u", Controller: new(true)}}
	for name, of := range map[string]struct {
		key         kates.Key
		value, held string
	}{
		"by annotation": {kates.ByAnnotation("other"), "b", "fields from protobuf"},
		"by owner":      {kates.ByOwner("ReplicaSet"), "default/rs", "fields from protobuf"},
		"by field":      {kates.ByField("spec.hostname"), "host", ""},
		"by label":      {kates.ByLabel("app"), "web", "fields from protobuf"},
		"by namespace":  {kates.ByNamespace, "default", "fields from protobuf"},
		"by metadata":   {kates.KeyOf(func(o metav1.Object) []string { return []string{o.GetAnnotations()["other"]} }), "b", "fields from protobuf"},
		"by a type":     {kates.KeyOf(func(p *kates.Pod) []string { return []string{p.Annotations["other"]} }), "b", ""},
	} {
		inBubble(t, name, func(t *testing.T) {
			c := katestest.NewServer(t, katestest.WithObjects(pod)).Client(t)
			p, err := kates.WatchEach[lites](t.Context(), c, kates.Query{Name: "Pods", Key: of.key})
			require.NoError(t, err)
			defer p.Close()
			turn, err := p.Next(soon(t))
			require.NoError(t, err, "no object has a key")
			defer turn.Done(nil)
			assert.Equal(t, of.value, turn.Key)
			form := p.Status().Queries[0].Form
			assert.Equal(t, of.held, form)
			require.Len(t, turn.Snapshot.Pods, 1)
			assert.Equal(t, "n1", turn.Snapshot.Pods[0].Spec.NodeName)
			require.Len(t, turn.Snapshot.Pods[0].Spec.Containers, 2)
			assert.Equal(t, "image:2", turn.Snapshot.Pods[0].Spec.Containers[1].Image)
		})
	}
}

func TestAFunctionThatReadsWhatAStructHasNotGetsTheWholeObject(t *testing.T) {
	type two struct {
		Maps  []*brief `kates:"configmaps"`
		Named []*brief `kates:"configmaps"`
	}
	for want, ref := range map[string]kates.Ref{
		"": kates.RefsOf("Maps", func(cm *kates.ConfigMap) []types.NamespacedName {
			return []types.NamespacedName{{Name: cm.Annotations["names"]}}
		}),
		"fields from json": kates.RefsOf("Maps", func(b brief) []types.NamespacedName {
			return []types.NamespacedName{{Name: b.Data["names"]}}
		}),
	} {
		s := &wireServer{objects: []any{versioned("a", "5")}}
		w, err := kates.Watch[two](t.Context(), s.client(t, kates.Tuning{Lists: kates.PagedLists}), kates.Query{Name: "Named", Refs: []kates.Ref{ref}})
		require.NoError(t, err)
		next(t, w, new(two), func() bool { return true })
		assert.Equal(t, want, w.Status().Queries[0].Form)
		require.NoError(t, w.Replace(t.Context(), kates.Query{Name: "Maps", LabelSelector: "!none"}))
		next(t, w, new(two), func() bool { return !w.Status().Queries[0].Changing })
		assert.Equal(t, want, w.Status().Queries[0].Form, "nor when it is replaced")
	}
}

func TestAFieldThatTheKindHasNotIsAnErrorOfWatch(t *testing.T) {
	type near struct {
		Dta map[string]string `json:"dta"`
	}
	type other struct {
		Data []string `json:"data"`
	}
	c := (&wireServer{}).client(t)
	_, err := kates.Watch[struct {
		Maps []*near `kates:"configmaps"`
	}](t.Context(), c)
	require.ErrorContains(t, err, "a ConfigMap has no field dta: data is near")
	_, err = kates.Watch[struct {
		Maps []*other `kates:"configmaps"`
	}](t.Context(), c)
	require.ErrorContains(t, err, "data of a ConfigMap is an object, which a []string cannot hold")
	_, err = kates.NewLister[near](t.Context(), c, kates.Query{Kind: "cm"})
	require.ErrorContains(t, err, "a ConfigMap has no field dta")
	w, err := kates.Watch[struct {
		Maps []*near `kates:"configmaps"`
	}](t.Context(), katestest.NewClient(t))
	require.NoError(t, err, "a fake holds whole objects")
	w.Close()
}

func TestTheKindIsAmongTheFieldsOfAStructThatHasIt(t *testing.T) {
	type kinded struct {
		kates.TypeMeta
		kates.ObjectMeta `json:"metadata"`
	}
	for _, protobuf := range []bool{true, false} { // it is asked for JSON in any case
		s := &wireServer{protobuf: protobuf, objects: []any{versioned("a", "5")}}
		if protobuf {
			s.protobuf, s.instead = false, strings.Replace(string((&wireServer{objects: s.objects}).list()), `"kind":"ConfigMap","apiVersion":"v1",`, "", 1)
		}
		w, err := kates.Watch[struct {
			Maps []kinded `kates:"configmaps"`
		}](t.Context(), s.client(t))
		require.NoError(t, err)
		var snap struct {
			Maps []kinded `kates:"configmaps"`
		}
		next(t, w, &snap, func() bool { return true })
		require.Len(t, snap.Maps, 1)
		assert.Equal(t, "v1/ConfigMap a", snap.Maps[0].APIVersion+"/"+snap.Maps[0].Kind+" "+snap.Maps[0].Name)
		assert.NotEmpty(t, snap.Maps[0].ManagedFields, "all that its JSON has")
	}
}

func TestWhatAVersionLeavesAsItWasIsTheSamePointer(t *testing.T) {
	type lite struct {
		Data map[string]string `json:"data"`
	}
	type lites struct {
		Maps   []*lite `kates:"configmaps"`
		Deltas []*kates.Delta
	}
	s := &wireServer{protobuf: true, objects: []any{versioned("a", "5")}}
	w, err := kates.Watch[lites](t.Context(), s.client(t))
	require.NoError(t, err)
	var first, second lites
	next(t, w, &first, func() bool { return true })
	s.send("MODIFIED", versioned("a", "8"))
	next(t, w, &second, func() bool { return len(second.Deltas) == 1 })
	assert.Equal(t, "update 8", second.Deltas[0].DeltaType.String()+" "+second.Deltas[0].ResourceVersion, "it is another version")
	assert.Same(t, first.Maps[0], second.Maps[0], "and the same value")
	changed := versioned("a", "9")
	changed.Data = map[string]string{"k": "w"}
	s.send("MODIFIED", changed)
	next(t, w, &second, func() bool { return second.Maps[0].Data["k"] == "w" })
	assert.Equal(t, map[string]string{"k": "v"}, first.Maps[0].Data)
}

// TestFieldsOfOneStructTypeShareAWatch: in all snapshots of a client. Another type has another
// watch.
func TestFieldsOfOneStructTypeShareAWatch(t *testing.T) {
	type shorter struct {
		Data map[string]string `json:"data"`
	}
	type first struct {
		Maps  []*brief   `kates:"configmaps"`
		Again []*brief   `kates:"configmaps"`
		Other []*shorter `kates:"configmaps"`
	}
	s := &wireServer{objects: []any{versioned("a", "5")}}
	c := s.client(t, kates.Tuning{Lists: kates.PagedLists})
	w, err := kates.Watch[first](t.Context(), c)
	require.NoError(t, err)
	var one first
	next(t, w, &one, func() bool { return true })
	more, err := kates.Watch[briefs](t.Context(), c, kates.Query{Name: "Maps", Kind: "configmaps"})
	require.NoError(t, err)
	var two briefs
	next(t, more, &two, func() bool { return true })
	assert.Same(t, one.Maps[0], one.Again[0])
	assert.Same(t, one.Maps[0], two.Maps[0])
	assert.Equal(t, one.Maps[0].Data, one.Other[0].Data)
	streams := map[string]int{}
	for _, q := range w.Status().Queries {
		streams[q.Form]++
	}
	assert.Equal(t, map[string]int{"fields from json": 3}, streams)
}
