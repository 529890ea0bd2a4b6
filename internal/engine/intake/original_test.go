package intake

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/object"
)

// refused is an object that is left out, whose original has some 1,000 bytes and more.
func refused(name, uid string, bytes int) object.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"data": strings.Repeat("x", bytes)}}
	return object.Reject(object.ID{Namespace: "ns", Name: name, UID: uid}, nil, object.OriginalOf(u), errors.New("bad"))
}

func isWhole(o object.Object) bool { return object.FaultOriginal(o).Bytes() > 0 }

// TestG6WhatIsHeldOfOriginalsIsCounted: for streams that share a budget.
func TestG6WhatIsHeldOfOriginalsIsCounted(t *testing.T) {
	budget := NewBudget(2500)
	stream := func() *Intake {
		return &Intake{originals: &originals{budget: budget, of: make(map[object.Key]int64)}}
	}
	one, other := stream(), stream()
	a, b := refused("a", "1", 1000), refused("b", "2", 1000)
	assert.Same(t, a, one.Bounded(a))
	assert.Same(t, b, other.Bounded(b))
	assert.False(t, isWhole(one.Bounded(refused("c", "3", 1000))), "there is no room")
	assert.True(t, isWhole(one.Bounded(refused("a", "1", 1400))), "its former version makes room")
	taken := budget.Taken()

	// one that comes and is not taken, as a newer one is held
	assert.True(t, isWhole(one.Bounded(refused("a", "1", 500))))
	assert.Less(t, budget.Taken(), taken)
	one.Note(object.KeyOf(a), refused("a", "1", 1400))
	assert.Equal(t, taken, budget.Taken())
	one.Note(object.KeyOf(a), nil)
	assert.Less(t, budget.Taken(), int64(1100), "it is gone")

	// a list that brings some, and is given up
	assert.True(t, isWhole(one.Bounded(refused("d", "4", 1200))))
	one.Recount(func(object.Key) object.Object { return nil })
	other.Recount(func(object.Key) object.Object { return b })
	assert.Equal(t, object.FaultOriginal(b).Bytes(), budget.Taken())

	other.CloseOriginals()
	assert.Zero(t, budget.Taken())
	assert.False(t, isWhole(other.Bounded(b)), "a write that ends later holds nothing")
	assert.Zero(t, budget.Taken())
}

// TestG6ObjectsOfOneKeyGoWithoutTheirOriginals: their names are ones that JSON cannot tell apart.
func TestG6ObjectsOfOneKeyGoWithoutTheirOriginals(t *testing.T) {
	budget := NewBudget(2500)
	s := &Intake{originals: &originals{budget: budget, of: make(map[object.Key]int64)}}
	assert.False(t, isWhole(s.Bounded(refused("\ufffd", "1", 1000))))
	assert.Zero(t, budget.Taken())
}

func TestAnObjectThatIsHeldHasNoOriginal(t *testing.T) {
	s := &Intake{originals: &originals{budget: NewBudget(1), of: make(map[object.Key]int64)}}
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	assert.Same(t, o, s.Bounded(&object.Received{Object: o, Original: object.OriginalOf(o)}))
}
