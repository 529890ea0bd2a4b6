package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestG8AnAnswerToAnOwnWriteWithANumberThatDoesNotFitItsFieldIsInvalid(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "p"},
		"spec":     map[string]any{"priority": int64(1<<32 + 7)}, // its lower bits are 7
	}}
	_, err := podDecoder().Typed(u)
	require.ErrorContains(t, err, `convert Pod "ns/p" to *v1.Pod: json: cannot unmarshal number 4294967303`)
}
