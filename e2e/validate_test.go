package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/kates"
)

// The module kates/validate is held against the same file, so it says what this server says.
func TestTheCasesOfTheValidatorAreWhatTheServerSays(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	c := newWire(t).client(t, kates.WithNamespace(ns))
	var cases []struct {
		Spec   map[string]any
		Causes []string
	}
	text, err := os.ReadFile("../testdata/validate/cases.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &cases))
	for _, test := range cases {
		o := map[string]any{
			"apiVersion": "validate.kates.io/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"},
			"spec": test.Spec,
		}
		err := c.Create(t.Context(), o, nil, kates.DryRun())
		var causes []string
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			assert.True(t, kates.IsInvalid(err), "%v: %v", test.Spec, err)
			for _, cause := range status.Status().Details.Causes {
				causes = append(causes, string(cause.Type)+" "+cause.Field)
			}
		} else {
			assert.NoError(t, err)
		}
		assert.ElementsMatch(t, test.Causes, causes, "%v: %v", test.Spec, err)
	}
}
