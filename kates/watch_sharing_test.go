package kates_test

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

func TestWhatAnEventLeavesAsItWasIsThatOfTheVersionBefore(t *testing.T) {
	for form, protobuf := range map[string]bool{"protobuf": true, "json": false} {
		t.Run(form, func(t *testing.T) {
			of := func(version, changed string) *kates.ConfigMap {
				cm := versioned("a", version)
				cm.GenerateName = strings.Repeat("longer than what is worth a table", 100)
				cm.Annotations = map[string]string{"changed": changed}
				return cm
			}
			s := &wireServer{protobuf: protobuf, objects: []any{of("5", "no")}}
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
			assert.Equal(t, was, first)
			assert.NotSame(t, first, second)
			assert.Equal(t, "yes", second.Annotations["changed"])
			for _, pair := range [][2]map[string]string{{first.Data, second.Data}, {first.Labels, second.Labels}} {
				assert.Equal(t, reflect.ValueOf(pair[0]).UnsafePointer(), reflect.ValueOf(pair[1]).UnsafePointer())
			}
			for _, pair := range [][2]string{{first.Namespace, second.Namespace}, {first.GenerateName, second.GenerateName}} {
				assert.Same(t, unsafe.StringData(pair[0]), unsafe.StringData(pair[1]))
			}
		})
	}
}
