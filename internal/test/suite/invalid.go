package suite

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/kates"
)

var invalidScenarios = []scenario{
	{"G8AnObjectThatDoesNotDecodeIsLeftOutReportedAndHeals", undecodable},
	{"G8AnObjectThatStopsDecodingLeavesTheSnapshot", stopsDecoding},
	{"G8APanicInAPredicateLeavesOneObjectOut", panicking},
	{"APredicateDecidesBeforeTheObjectIsDecodedAndWithoutLocks", predicateFirst},
	{"G8ALookupAndAListerSayWhyAnObjectIsInvalid", invalidLookups},
}

// weight is a number in a string, so that a ConfigMap may be valid for the server and invalid for
// the program.
type weight int

func (w *weight) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("a weight must be a number")
	}
	*w = weight(n)
	return nil
}

func (w weight) MarshalJSON() ([]byte, error) { return json.Marshal(strconv.Itoa(int(w))) }

type weighted struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              struct {
		Weight weight `json:"weight"`
	} `json:"data"`
}

type weights struct {
	Weights []*weighted `kates:"configmaps"`
	Deltas  []*kates.Delta
	Invalid []kates.Invalid
}

func (e *env) watchWeights() (*kates.Snapshots[weights], *weights) {
	e.t.Helper()
	snapshots := watch[weights](e, e.client, e.inNamespace("Weights")...)
	var snap weights
	awaitFirst(e.t, snapshots, &snap)
	return snapshots, &snap
}

func undecodable(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("good", "weight", "1"), e.configMap("bad", "weight", "heavy"))
	snapshots, snap := e.watchWeights()
	assert.Equal(t, []string{"good"}, names(snap.Weights))
	assert.Equal(t, []string{"add good"}, deltaNames(snap.Deltas))
	require.Len(t, snap.Invalid, 1)
	assert.Equal(t, "Weights", snap.Invalid[0].Query)
	assert.Equal(t, "bad", snap.Invalid[0].Object.GetName())
	require.ErrorContains(t, snap.Invalid[0].Err, "a weight must be a number")
	assert.Equal(t, 1, snapshots.Status().Queries[0].Invalid)

	e.foreignUpdate(e.configMap("bad", "weight", "2"))
	awaitEach(t, snapshots, snap, "the object healed", func() bool { return true })
	assert.Equal(t, []string{"bad", "good"}, names(snap.Weights))
	assert.Equal(t, []string{"add bad"}, deltaNames(snap.Deltas))
	assert.Empty(t, snap.Invalid)
	assert.Zero(t, snapshots.Status().Queries[0].Invalid)
}

func stopsDecoding(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm", "weight", "1"))
	snapshots, snap := e.watchWeights()
	e.foreignCreate(e.configMap("other", "weight", "1"))
	await(t, snapshots, snap, "the addition", func(s *weights) bool { return len(s.Weights) == 2 })
	require.NoError(t, e.client.Patch(e.ctx, e.configMap("cm"), kates.MergePatchType, []byte(`{"data":{"weight":"heavy"}}`), nil))
	now(t, snapshots, snap)
	assert.Equal(t, []string{"other"}, names(snap.Weights))
	assert.Len(t, snap.Invalid, 1)
	assert.Equal(t, []string{"delete cm"}, deltaNames(snap.Deltas))

	e.foreignDelete(e.configMap("cm"))
	await(t, snapshots, snap, "the deletion", func(s *weights) bool { return len(s.Invalid) == 0 })
	assert.Empty(t, snap.Deltas, "what was not shown is not deleted again")
}

func panicking(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("good"), e.configMap("bad"))
	var reported []kates.Invalid
	client := e.client.With(kates.WithOnInvalid(func(i kates.Invalid) { reported = append(reported, i) }))
	accumulator := accumulate[inputs](e, client, kates.Query{Name: "ConfigMaps", Kind: "cm", Namespace: e.ns})
	var deltas []*kates.Delta
	filtered := &filteredSource[inputs]{accumulator.Accumulator, func(u *kates.Unstructured) bool {
		if u.GetName() == "bad" && len(u.GetLabels()) == 0 {
			panic("a bug of the user's")
		}
		return true
	}, &deltas}
	var snap inputs
	awaitFirst(t, filtered, &snap)
	assert.Equal(t, []string{"good"}, names(snap.ConfigMaps))
	assert.Equal(t, []string{"add good"}, deltaNames(deltas))
	require.Len(t, reported, 1)
	assert.Equal(t, "bad", reported[0].Object.GetName())
	require.EqualError(t, reported[0].Err, "the predicate panicked: a bug of the user's", "without the stack")
	var panicked *kates.PanicError
	require.ErrorAs(t, reported[0].Err, &panicked)
	assert.Equal(t, "a bug of the user's", panicked.Value)
	assert.Contains(t, panicked.Stack, "invalid.go")

	e.foreignUpdate(e.labelled("bad", "now", "good"))
	await(t, filtered, &snap, "the object healed", func(s *inputs) bool { return len(s.ConfigMaps) == 2 })
	assert.Equal(t, []string{"add bad"}, deltaNames(deltas))
}

// predicateFirst: an object that is rejected need not decode. The predicate calls whatever takes
// the locks of the watch, the stream and the client.
func predicateFirst(t *testing.T, e *env) {
	type snapshot struct{ Weights []*weighted }
	e.foreignCreate(e.configMap("good", "weight", "1"), e.configMap("bad", "weight", "heavy"))
	query := kates.Query{Name: "Weights", Kind: "cm", Namespace: e.ns}
	other := accumulate[snapshot](e, e.client, query)
	var theirs snapshot
	awaitFirst(t, other, &theirs)
	var reported []kates.Invalid
	client := e.client.With(kates.WithOnInvalid(func(i kates.Invalid) { reported = append(reported, i) }))
	accumulator := accumulate[snapshot](e, client, query)
	asked := map[string]int{}
	var deltas []*kates.Delta
	filtered := &filteredSource[snapshot]{accumulator.Accumulator, func(u *kates.Unstructured) bool {
		asked[u.GetName()]++
		assert.NoError(t, accumulator.Ready())
		assert.Len(t, accumulator.Status().Queries, 1)
		assert.NotEmpty(t, client.Status().Queries)
		if u.GetName() == "good" {
			assert.NoError(t, client.Create(e.ctx, e.configMap("made", "weight", "3"), nil))
			_, err := other.Update(e.ctx, &theirs)
			assert.NoError(t, err)
			assert.Contains(t, names(theirs.Weights), "made")
			accumulator.Rejudge()
		}
		return u.GetName() != "bad"
	}, &deltas}
	var snap snapshot
	awaitFirst(t, filtered, &snap)
	assert.Equal(t, 1, asked["bad"])
	assert.Empty(t, reported, "it was not decoded")
	assert.Contains(t, names(snap.Weights), "good")
	assert.NotContains(t, names(snap.Weights), "bad")
	for _, q := range accumulator.Status().Queries {
		assert.Zero(t, q.Invalid)
	}
}

func invalidLookups(t *testing.T, e *env) {
	type lookups struct {
		Weights kates.Lookup[*weighted] `kates:"configmaps"`
	}
	e.foreignCreate(e.configMap("good", "weight", "1"), e.configMap("bad", "weight", "heavy"))
	snapshots := watch[lookups](e, e.client, e.inNamespace("Weights")...)
	var snap lookups
	awaitFirst(t, snapshots, &snap)
	lister, err := kates.NewLister[*weighted](e.ctx, e.client, kates.Query{Kind: "configmaps", Namespace: e.ns})
	require.NoError(t, err)
	for what, look := range map[string]interface {
		Get(namespace, name string) (*weighted, error)
		List(namespace string, selector labels.Selector) ([]*weighted, error)
	}{"lookup": snap.Weights, "lister": lister} {
		good, err := look.Get(e.ns, "good")
		require.NoError(t, err, what)
		assert.Equal(t, weight(1), good.Data.Weight, what)
		_, err = look.Get(e.ns, "bad")
		require.ErrorContains(t, err, "a weight must be a number", what)
		_, err = look.Get(e.ns, "none")
		assert.True(t, kates.IsNotFound(err), what)
		all, err := look.List(e.ns, nil)
		require.ErrorContains(t, err, e.ns+"/bad", what)
		assert.Equal(t, []string{"good"}, names(all), what)
	}
	lister.Close()
	_, err = lister.Get(e.ns, "good")
	require.ErrorIs(t, err, kates.ErrClosed)
	_, err = lister.List("", nil)
	require.ErrorIs(t, err, kates.ErrClosed)
}
