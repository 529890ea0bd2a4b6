package derive

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A selection that made an entry run, and that nobody asks for any more, holds no objects.
func TestASelectionThatIsForgottenHoldsNoEntries(t *testing.T) {
	g := New[world]("g")
	objects := Objects(g, "objects", func(w *world) []*metav1.PartialObjectMetadata { return w.Objects })
	byLabels := ByLabels(objects, "by labels", func(_ nameType, o *metav1.PartialObjectMetadata) (string, map[string]string) {
		return "", o.Labels
	})
	Map(sourceA(g), "out", func(r *Reader, _ string, x item) (int, error) {
		return byLabels.Select(r, "", labels.SelectorFromSet(labels.Set{"app": x.Ref})).Len(), nil
	})
	both := []item{{"p1", "a", 0}, {"p2", "b", 0}}
	held := func() weak.Pointer[metav1.PartialObjectMetadata] {
		one := object("x", "a")
		update(t, g, world{A: both, Objects: []*metav1.PartialObjectMetadata{one}})
		update(t, g, world{A: both, Objects: []*metav1.PartialObjectMetadata{one, object("y", "a")}}) // p1 runs because of it
		update(t, g, world{A: both[1:], Objects: []*metav1.PartialObjectMetadata{one}})
		return weak.Make(one)
	}()
	for i := range 3 {
		update(t, g, world{A: []item{{"p2", "b", i}}, Objects: []*metav1.PartialObjectMetadata{object("z", fmt.Sprint(i))}})
	}
	runtime.GC()
	runtime.GC()
	assert.Nil(t, held.Value())
	runtime.KeepAlive(g)
}

func TestTheExampleOfAnInvalidEntryIsOneThatIsInvalidNow(t *testing.T) {
	g := New[world]("g")
	Map(sourceA(g), "m", func(_ *Reader, _ string, x item) (int, error) {
		if x.N < 0 {
			return 0, errors.New("less than nothing")
		}
		return x.N, nil
	})
	example := func(items ...item) string {
		update(t, g, world{A: items})
		err := g.Stats().Nodes[1].Example
		if err == nil {
			return ""
		}
		return err.Error()
	}
	assert.Equal(t, "m b: less than nothing", example(item{"a", "", 1}, item{"b", "", -1}))
	assert.Contains(t, example(item{"a", "", -1}, item{"b", "", -1}), "less than nothing")
	assert.Equal(t, "m b: less than nothing", example(item{"a", "", 1}, item{"b", "", -1}))
	assert.Empty(t, example(item{"a", "", 1}, item{"b", "", 1}))
	assert.Equal(t, "m b: less than nothing", example(item{"b", "", -1}))
	assert.Empty(t, example())
}

// The value that a FlatMap keeps is not the one that its last run has put, if both are equal.
func TestVerifyFindsAWriteToAValueThatAFlatMapKeeps(t *testing.T) {
	g := New[world]("g", Verified())
	flat := FlatMap(sourceA(g), "f", func(_ *Reader, _ string, _ item, put func(string, *int)) error {
		seven := 7
		put("k", &seven)
		return nil
	})
	update(t, g, world{A: []item{{"x", "", 1}}})
	r := update(t, g, world{A: []item{{"x", "", 2}}})
	kept, err := flat.Get(r, From[string, string]{"x", "k"})
	require.NoError(t, err)
	*kept = 99
	require.EqualError(t, g.Verify(), `derive: graph "g": f x/k: the value was changed after it was returned: no value is written to`)
}

// What a run has put again, and equals what is kept, is held nowhere.
func TestAFlatMapHoldsNoValueThatIsCutOff(t *testing.T) {
	g := New[world]("g")
	var put weak.Pointer[[100]int]
	FlatMap(sourceA(g), "f", func(_ *Reader, _ string, _ item, emit func(string, *[100]int)) error {
		v := &[100]int{7}
		put = weak.Make(v)
		emit("k", v)
		return nil
	})
	update(t, g, world{A: []item{{"x", "", 1}}})
	first := put
	update(t, g, world{A: []item{{"x", "", 2}}})
	runtime.GC()
	runtime.GC()
	assert.NotNil(t, first.Value())
	assert.Nil(t, put.Value())
	runtime.KeepAlive(g)
}

func TestTheKeysOfAnIndexAreNoRunsOfTheProgram(t *testing.T) {
	g := New[world]("g")
	GroupBy(sourceA(g), "x", func(_ string, x item) []string { return []string{x.Ref} }).Keys()
	for i := range 5 {
		update(t, g, world{A: []item{{"k", "r", i}}})
	}
	keys := g.Stats().Nodes[2]
	assert.Equal(t, []any{"x (keys)", 1, uint64(0), uint64(0)}, []any{keys.Name, keys.Entries, keys.Runs, keys.Equal})
}

func TestChangesOfGroupsAreChangesOfTheirMembers(t *testing.T) {
	g := New[world]("g")
	changes := ChangesOf(GroupBy(sourceA(g), "x", func(_ string, x item) []string { return []string{x.Ref} }).Groups())
	changed := func(w world) (all []string) {
		for ch := range changes.All(update(t, g, w)) {
			all = append(all, ch.Key)
		}
		return all
	}
	one := world{A: []item{{"a", "r", 1}, {"b", "s", 1}}}
	assert.Equal(t, []string{"r", "s"}, changed(one))
	changes.Done()
	require.NoError(t, g.Reset())
	assert.Empty(t, changed(one), "a first Update has made other groups with the same members")
	assert.Equal(t, []string{"r"}, changed(world{A: []item{{"a", "r", 2}, {"b", "s", 1}}}))
	assert.Empty(t, changed(one), "it is again what it was")
}

func TestAnEntryInManyGroupsMovesFromSomeToOthers(t *testing.T) {
	g := New[world]("g")
	x := GroupBy(sourceA(g), "x", func(_ string, x item) (all []int) {
		for i := range 100 {
			all = append(all, (i*7)%100+x.N, x.N)
		}
		return all
	})
	for _, n := range []int{0, 50, 20} {
		r := update(t, g, world{A: []item{{"a", "", n}}})
		assert.Equal(t, 100, x.Groups().Len(r))
		assert.Equal(t, 1, x.Members(r, n).Len())
		assert.Zero(t, x.Members(r, n-1).Len()+x.Members(r, n+100).Len())
	}
}
