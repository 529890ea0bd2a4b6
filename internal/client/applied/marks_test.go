package applied

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/object"
)

// nothing is a client whose watches show no objects.
type nothing struct{}

func (nothing) Holds(object.Resource, object.Key, types.UID) bool { return false }

// markOf is an object for the marks.
func markOf(name string) *Wanted {
	return &Wanted{Resource: object.Resource{Storage: "configmaps"}, Key: object.Key{Name: name}, Sum: "sum"}
}

func objectAt(uid types.UID, version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetUID(uid)
	u.SetResourceVersion(version)
	return u
}

func TestAnApplyIsKnownToChangeNothingAtTheVersionThatItWasAnsweredWith(t *testing.T) {
	var marks Marks
	w := markOf("x")
	assert.False(t, marks.At(w, "m", objectAt("u", "5")))
	marks.Put(nothing{}, w, "m", "u", "5")
	assert.True(t, marks.At(w, "m", objectAt("u", "5")))
	assert.False(t, marks.At(w, "m", objectAt("u", "6")), "another version")
	assert.False(t, marks.At(w, "m", objectAt("v", "5")), "another object")
	assert.False(t, marks.At(w, "n", objectAt("u", "5")), "another manager")
	assert.False(t, marks.At(markOf("y"), "m", objectAt("u", "5")), "another name")
	other := markOf("x")
	other.Sum = "other"
	assert.False(t, marks.At(other, "m", objectAt("u", "5")), "something else is applied")
	marks.Forget(w.Stored())
	assert.False(t, marks.At(w, "m", objectAt("u", "5")))
}

func TestWhatIsRememberedOfAppliesIsBoundedByTheObjectsThatAreShown(t *testing.T) {
	var marks Marks
	for i := range 10_000 { // none of which any watch shows
		marks.Put(nothing{}, markOf(fmt.Sprint("x", i)), "m", "u", "5")
	}
	assert.LessOrEqual(t, marks.Count("configmaps"), 1024)
	assert.NotZero(t, marks.Count("configmaps"))
	assert.Zero(t, marks.Count("secrets"))
	marks.Put(nothing{}, markOf("fake"), "m", "u", "")
	assert.NotContains(t, marks.marks, markOf("fake").Stored(), "without a version nothing can be known")
}
