package core

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAnErrorAboutASecretQuotesNoValueInAnyFormAndStaysWhatItIs covers the forms in which an error
// may quote a value, and what the error wraps.
func TestAnErrorAboutASecretQuotesNoValueInAnyFormAndStaysWhatItIs(t *testing.T) {
	const value = `a<b&"c"`
	u := &unstructured.Unstructured{Object: map[string]any{"stringData": map[string]any{"k": value}}}
	o := &Subject{Unstructured: u}
	o.Resource.Resource = "secrets"
	for form, quoted := range map[string]string{
		"as it is": value, "as Go quotes": fmt.Sprintf("%q", value), "as JSON does": `a\u003cb\u0026\"c\"`, "in base64": "YTxiJiJjIg==",
	} {
		err := o.discreetly(fmt.Errorf("the server says %s: %w", quoted, context.DeadlineExceeded))
		assert.ErrorContains(t, err, withheld, form)
		assert.NotContains(t, err.Error(), quoted, form)
		assert.NotContains(t, fmt.Sprintf("%#v", err), quoted, form)
		assert.ErrorIs(t, err, context.DeadlineExceeded, form)
		assert.NotErrorIs(t, err, context.Canceled, form)
	}
	plain := errors.New("no route to host")
	assert.Equal(t, plain, o.discreetly(plain))
}
