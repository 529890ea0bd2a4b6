package query

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

// oneShown is a reader that has one object, or none.
type oneShown struct{ o stream.Object }

func (s oneShown) Get(stream.Key) (stream.Object, bool) { return s.o, s.o != nil }
func (s oneShown) Keys(func(stream.Key) bool)           {}
func (s oneShown) Present() bool                        { return true }

// TestG5G6AUnionShowsSeveralObjectsOfOneNameAsOneThatIsInvalidAndThenTheOneThatIsLeft: JSON has one
// name for several objects.
func TestG5G6AUnionShowsSeveralObjectsOfOneNameAsOneThatIsInvalidAndThenTheOneThatIsLeft(t *testing.T) {
	key := stream.Key{Namespace: "ns", Name: "a\uFFFD"}
	object := func(uid, rv string) stream.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, UID: types.UID(uid), ResourceVersion: rv,
		}}
	}
	both := stream.Together(key, object("u1", "10"), object("u2", "20"))
	for name, c := range map[string]struct {
		had     stream.Object
		shown   []stream.Object // by the streams
		known   []string
		uid     types.UID // "" if it is invalid
		nothing bool
	}{
		"the first stream has none":         {nil, []stream.Object{nil, object("u1", "10"), object("u2", "20")}, []string{"20", "20", "20"}, "", false},
		"a stream has several":              {nil, []stream.Object{both, object("u3", "30")}, []string{"30", "30"}, "", false},
		"one of three is gone":              {both, []stream.Object{nil, object("u1", "10"), nil}, []string{"40", "40", "40"}, "u1", false},
		"the newer one is gone":             {object("u2", "20"), []stream.Object{object("u1", "10"), nil}, []string{"40", "40"}, "u1", false},
		"one comes late, and one has gone":  {object("u1", "25"), []stream.Object{nil, object("u2", "20")}, []string{"40", "40"}, "u2", false},
		"both are gone":                     {both, []stream.Object{nil, nil}, []string{"40", "40"}, "", true},
		"streams show versions of the same": {nil, []stream.Object{object("u1", "10"), object("u1", "12")}, []string{"12", "12"}, "u1", false},
	} {
		l := &looks{of: make([]*stream.Listener, len(c.shown))}
		for i, o := range c.shown {
			s := coherence.Sight{KnownRV: c.known[i]}
			if o != nil {
				s.Object = o
			}
			l.sights = append(l.sights, s)
		}
		d := new(merging).decide(oneShown{c.had}, key, coherence.Departure{}, l, false)
		if c.nothing {
			assert.Nil(t, d.object, name)
			continue
		}
		if assert.NotNil(t, d.object, name) {
			assert.Equal(t, c.uid, d.object.GetUID(), name)
			assert.Equal(t, c.uid == "", stream.StandsForSeveral(d.object), name)
		}
	}
}
