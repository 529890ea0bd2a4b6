//go:build !kates_safe

package parts

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// remembering has a memory with room, and two fields of lists.
func remembering() (m *memory, a, b *field) {
	m = &memory{seed: maphash.MakeSeed(), numbers: newSmall()}
	m.miss()
	return m, &field{kind: list, salt: 1}, &field{kind: list, salt: 2}
}

func TestPartsAreSharedByTheirFieldAndBytesAndNotByTheirHash(t *testing.T) {
	m, a, b := remembering()
	raw := []byte("the bytes of a part")
	for _, other := range []*part{{field: b, raw: raw}, {field: a, raw: []byte("the bytes of another")}} {
		h := m.hash(a, raw)
		pair := m.pair(h) // as if they had the same hash
		pair[0].hash, pair[0].part, pair[1].hash, pair[1].part = h, other, h, other
		found, _ := m.find(a, raw)
		assert.Nil(t, found)
	}
	is := &part{field: a, raw: raw}
	h := m.hash(a, raw)
	pair := m.pair(h)
	pair[1].hash, pair[1].part = h, is
	found, _ := m.find(a, raw)
	assert.Same(t, is, found)
}

func TestAPartIsRememberedWhenItComesForTheSecondTime(t *testing.T) {
	m, a, _ := remembering()
	raw := []byte("a part")
	var at unsafe.Pointer
	for times := range 3 {
		found, h := m.find(a, raw)
		assert.Equal(t, times == 2, found != nil, "it has come %d times", times)
		if found == nil {
			m.remember(a, h, raw, at, 0)
		}
	}
	assert.Equal(t, len(raw), m.held)
}

func TestATableHoldsNoMoreThanItsBoundWhateverComes(t *testing.T) {
	table := New(reflect.TypeFor[corev1.ConfigMap](), true)
	for i := range 3 * mostHeld / longest {
		data := map[string]string{"k": fmt.Sprint(i, strings.Repeat("x", longest-100))}
		raw, err := (&corev1.ConfigMap{Data: data}).Marshal()
		require.NoError(t, err)
		for range 3 {
			require.True(t, table.Decode(reflect.New(reflect.TypeFor[corev1.ConfigMap]()).Interface(), raw))
		}
	}
	m := table.take()
	held := 0
	for _, s := range m.parts {
		if s.part != nil {
			held += len(s.part.raw)
		}
	}
	assert.Equal(t, held, m.held)
	assert.LessOrEqual(t, held, mostHeld)
	assert.LessOrEqual(t, len(m.parts), mostSlots)
	assert.NotZero(t, held)
}
