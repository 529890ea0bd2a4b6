package kates_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

// TestWhatEventsLeaveAsItWasIsThatOfTheVersionsBefore: what has come twice is remembered, unless
// something else takes its place. Where that happens is another one for each client.
func TestWhatEventsLeaveAsItWasIsThatOfTheVersionsBefore(t *testing.T) {
	for form, protobuf := range map[string]bool{"protobuf": true, "json": false} {
		t.Run(form, func(t *testing.T) {
			shared := false
			for try := 0; try < 10 && !shared; try++ {
				shared = sharesWithVersionsBefore(t, &wireServer{protobuf: protobuf})
			}
			assert.True(t, shared)
		})
	}
}

func sharesWithVersionsBefore(t *testing.T, s *wireServer) bool {
	of := func(version, changed string) *kates.ConfigMap {
		cm := versioned("a", version)
		cm.Annotations = map[string]string{"changed": changed}
		return cm
	}
	s.objects = []any{of("5", "no")}
	w, err := kates.Watch[typedMaps](t.Context(), s.client(t))
	require.NoError(t, err)
	var snap typedMaps
	version := func(v string) *kates.ConfigMap {
		next(t, w, &snap, func() bool { return len(snap.ConfigMaps) == 1 && snap.ConfigMaps[0].ResourceVersion == v })
		return snap.ConfigMaps[0]
	}
	first := version("5")
	was := first.DeepCopy()
	s.send("MODIFIED", of("8", "yes"))
	second := version("8")
	s.send("MODIFIED", of("9", "again"))
	third := version("9")
	assert.Equal(t, was, first)
	assert.NotSame(t, first, second)
	assert.Equal(t, "yes", second.Annotations["changed"])
	assert.Equal(t, "again", third.Annotations["changed"])
	same := func(a, b map[string]string) bool {
		return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
	}
	return same(second.Data, third.Data) && same(second.Labels, third.Labels)
}
