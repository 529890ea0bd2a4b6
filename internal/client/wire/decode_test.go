package wire

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	objects "github.com/kates-go/kates/internal/object"
)

func TestAnObjectTakesNothingFromWhatIsOfAnotherType(t *testing.T) {
	long := func() string { return strings.Repeat("too long for the table", 100) }
	d := podDecoder()
	of := func(o objects.Object) objects.Object { o.SetGenerateName(long()); return o }
	before := of(&corev1.Pod{})
	for _, other := range []objects.Object{
		nil, of(&corev1.ConfigMap{}), objects.Undecoded(d.resource, objects.Key{Name: "x"}, "uid", "1", nil, errors.New("bad")), before,
	} {
		for _, o := range []objects.Object{of(&corev1.Pod{}), of(&corev1.Secret{})} {
			d.Compact(o, other, true)
			assert.Equal(t, long(), o.GetGenerateName())
			_, pod := o.(*corev1.Pod)
			taken := unsafe.StringData(before.GetGenerateName()) == unsafe.StringData(o.GetGenerateName())
			assert.Equal(t, other == before && pod, taken, "%T after %T", o, other)
			if other != nil && other != before {
				assert.NotSame(t, unsafe.StringData(other.GetGenerateName()), unsafe.StringData(o.GetGenerateName()))
			}
		}
	}
}

func TestG8AnAnswerToAnOwnWriteWithANumberThatDoesNotFitItsFieldIsInvalid(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "p"},
		"spec":     map[string]any{"priority": int64(1<<32 + 7)}, // its lower bits are 7
	}}
	_, err := podDecoder().Typed(u)
	require.ErrorContains(t, err, `convert Pod "ns/p" to *v1.Pod: json: cannot unmarshal number 4294967303`)
}
