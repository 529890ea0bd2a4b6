package kates

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
)

// appliedAnswer is an object as a server would answer an apply.
func appliedAnswer(name, version, owned string) *Unstructured {
	u := NewUnstructured("ConfigMap", "v1")
	u.SetName(name)
	u.SetUID(types.UID("uid of " + name))
	u.SetResourceVersion(version)
	u.Object["data"] = map[string]any{"k": "v"}
	u.Object["metadata"].(map[string]any)["managedFields"] = []any{
		map[string]any{"manager": "m", "operation": "Apply", "fieldsV1": map[string]any{"f:data": map[string]any{owned: map[string]any{}}}},
		map[string]any{"manager": "m", "operation": "Update", "fieldsV1": map[string]any{"f:x": map[string]any{}}},
	}
	return u
}

func TestAnApplyIsKnownToChangeNothingWhileNothingThatMattersHasChanged(t *testing.T) {
	streams := accumulator.NewStreams(accumulator.Config{})
	defer streams.Close()
	o := &object{appliedAnswer("x", "5", "f:k"), accumulator.Resource{Storage: "configmaps"}}
	did := mark{manager: "m", sum: [32]byte{1}}
	for what, test := range map[string]struct {
		now   func(u *Unstructured)
		mark  mark
		known bool
	}{
		"nothing":                      {func(*Unstructured) {}, did, true},
		"the version alone":            {func(u *Unstructured) { u.SetResourceVersion("6") }, did, true},
		"the status":                   {func(u *Unstructured) { u.SetResourceVersion("6"); u.Object["status"] = map[string]any{"a": "b"} }, did, true},
		"the content":                  {func(u *Unstructured) { u.SetResourceVersion("6"); u.Object["data"] = nil }, did, false},
		"a label":                      {func(u *Unstructured) { u.SetResourceVersion("6"); u.SetLabels(map[string]string{"a": "b"}) }, did, false},
		"who owns the field":           {func(u *Unstructured) { *u = *appliedAnswer("x", "6", "f:other") }, did, false},
		"what others own":              {func(u *Unstructured) { u.SetResourceVersion("6"); u.SetManagedFields(u.GetManagedFields()[:1]) }, did, true},
		"nobody knows who owns what":   {func(u *Unstructured) { u.SetResourceVersion("6"); u.SetManagedFields(nil) }, did, false},
		"the object":                   {func(u *Unstructured) { u.SetUID("another") }, did, false},
		"what is applied":              {func(*Unstructured) {}, mark{manager: "m", sum: [32]byte{2}}, false},
		"who applies it":               {func(*Unstructured) {}, mark{manager: "n", sum: [32]byte{1}}, false},
		"the status, which is applied": {func(u *Unstructured) { u.SetResourceVersion("6") }, mark{manager: "m", sum: [32]byte{1}, status: true}, false},
	} {
		t.Run(what, func(t *testing.T) {
			var marks applyMarks
			first := did
			first.status = test.mark.status
			marks.put(streams, o, first, appliedAnswer("x", "5", "f:k"))
			now := appliedAnswer("x", "5", "f:k")
			test.now(now)
			assert.Equal(t, test.known, marks.holds(o, test.mark, now))
			assert.Equal(t, test.known, marks.at(o, test.mark, now), "and the version is known from then on")
			marks.forget(o.stored())
			assert.False(t, marks.holds(o, test.mark, now))
		})
	}
}

func TestWhatIsRememberedOfAppliesIsBoundedByTheObjectsThatAreShown(t *testing.T) {
	streams := accumulator.NewStreams(accumulator.Config{})
	defer streams.Close()
	var marks applyMarks
	for i := range 10_000 { // none of which any watch shows
		u := appliedAnswer(fmt.Sprint("x", i), "5", "f:k")
		marks.put(streams, &object{u, accumulator.Resource{Storage: "configmaps"}}, mark{manager: "m"}, u)
	}
	assert.LessOrEqual(t, len(marks.marks), 1024)
	fake := appliedAnswer("fake", "", "f:k")
	marks.put(streams, &object{fake, accumulator.Resource{Storage: "fakes"}}, mark{}, fake)
	assert.NotContains(t, marks.marks, storedKey{storage: "fakes", Key: accumulator.Key{Name: "fake"}}, "without a version nothing can be known")
}
