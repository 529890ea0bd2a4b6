//go:build !kates_safe

package parts_test

import (
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/client/wire/parts"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// odd are bytes of pods that no server writes. The generated decoder takes some of them.
func odd(t testing.TB) map[string][]byte {
	raw := encoded(t, realistic.Pod(7))
	spec := func(inner ...byte) []byte { return append([]byte{2<<3 | 2, byte(len(inner))}, inner...) }
	container := []byte{2<<3 | 2, 3, 1<<3 | 2, 1, 'c'}
	volume := []byte{1<<3 | 2, 3, 1<<3 | 2, 1, 'v'}
	return map[string][]byte{
		"a spec in two pieces":         slices.Concat(raw, spec(container...)),
		"a list in two pieces":         spec(slices.Concat(container, volume, container)...),
		"a pointer in two pieces":      spec(14<<3|2, 2, 5<<3, 7, 14<<3|2, 2, 2<<3, 7),
		"metadata last":                slices.Concat(spec(container...), raw),
		"a number for a list":          spec(2<<3, 1),
		"bytes for a number":           spec(4<<3|2, 1, 30),
		"a name that is a number":      {1<<3 | 2, 2, 1 << 3, 7},
		"a field of eight bytes":       spec(2<<3|1, 1, 2, 3, 4, 5, 6, 7, 8),
		"an unknown field":             slices.Concat(raw, []byte{99<<3&0x7f | 2 | 0x80, 99 >> 4, 1, 'x'}),
		"an unknown group":             slices.Concat(raw, []byte{9<<3 | 3, 9<<3 | 4}),
		"a group that does not end":    slices.Concat(raw, []byte{9<<3 | 3}),
		"field 0":                      slices.Concat(raw, []byte{0<<3 | 2, 0}),
		"a number of 70 bits":          spec(4<<3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"a tag beyond 32 bits":         {1<<3 | 2 | 0x80, 0x80, 0x80, 0x80, 0x80, 1, 3, 1<<3 | 2, 1, 'x', 1<<3 | 2, 3, 1<<3 | 2, 1, 'y'},
		"a label without a value":      {1<<3 | 2, 5, 11<<3 | 2, 3, 1<<3 | 2, 1, 'k'},
		"a label with its value first": {1<<3 | 2, 8, 11<<3 | 2, 6, 2<<3 | 2, 1, 'v', 1<<3 | 2, 1, 'k'},
		"a label that is there twice":  {1<<3 | 2, 16, 11<<3 | 2, 6, 1<<3 | 2, 1, 'k', 2<<3 | 2, 1, 'v', 11<<3 | 2, 6, 1<<3 | 2, 1, 'k', 2<<3 | 2, 1, 'w'},
		"a label with two values":      {1<<3 | 2, 11, 11<<3 | 2, 9, 1<<3 | 2, 1, 'k', 2<<3 | 2, 1, 'v', 2<<3 | 2, 1, 'w'},
		"a time of two pieces":         {1<<3 | 2, 8, 8<<3 | 2, 2, 1 << 3, 7, 8<<3 | 2, 2, 2 << 3, 7},
		"a length beyond the end":      {2<<3 | 2, 0x7f},
		"a cut object":                 raw[:len(raw)-1],
		"nothing":                      {},
	}
}

// agree decodes bytes several times. What a table takes, the generated decoder takes as well, and
// makes the same of it.
func agree(t testing.TB, typ reflect.Type, table *parts.Table, raw []byte) {
	t.Helper()
	want := reflect.New(typ).Interface()
	err := want.(message).Unmarshal(slices.Clone(raw))
	for range 3 {
		got := reflect.New(typ)
		if table.Decode(got.Interface(), slices.Clone(raw)) {
			require.NoError(t, err)
			require.Equal(t, want, got.Interface())
		}
	}
}

func TestWhatNoServerWritesIsDecodedAsItsOwnDecoderDoesOrNotAtAll(t *testing.T) {
	typ := reflect.TypeFor[corev1.Pod]()
	for what, raw := range odd(t) {
		t.Run(what, func(t *testing.T) {
			table := parts.New(typ, false)
			agree(t, typ, table, raw)
			good := encoded(t, realistic.Pod(7))
			require.Equal(t, plainly(t, typ, good), decoded(t, table, typ, good), "afterwards")
		})
	}
}

// FuzzDecode compares a table with the generated decoders, for any bytes.
func FuzzDecode(f *testing.F) {
	for _, raw := range odd(f) {
		f.Add(raw)
	}
	for i := range 3 {
		f.Add(encoded(f, realistic.Pod(i)))
	}
	types := []reflect.Type{reflect.TypeFor[corev1.Pod](), reflect.TypeFor[corev1.Node](), reflect.TypeFor[appsv1.Deployment]()}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, typ := range types {
			agree(t, typ, parts.New(typ, false), raw)
		}
	})
}

func TestG10NobodyWritesToPartsThatObjectsShare(t *testing.T) {
	typ := reflect.TypeFor[corev1.Pod]()
	table := parts.New(typ, true)
	var readers sync.WaitGroup
	for of := range 3 {
		readers.Go(func() { // the race detector looks on
			for i := range 100 {
				raw := encoded(t, realistic.Restarted(realistic.Pod(i%5), of))
				p := reflect.New(typ)
				if assert.True(t, table.Decode(p.Interface(), raw)) {
					readers.Go(func() { assert.NotEmpty(t, p.Interface().(*corev1.Pod).DeepCopy().Spec) })
				}
			}
		})
	}
	readers.Wait()
}
