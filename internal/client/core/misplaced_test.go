package core

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestAnAnswerThatIsAboutTheContentHasNothingLookedUp: tenants can cause such answers all the time.
func TestAnAnswerThatIsAboutTheContentHasNothingLookedUp(t *testing.T) {
	things := schema.GroupResource{Group: "example.com", Resource: "things"}
	for message, want := range map[string]bool{
		`Thing in version "v1" cannot be handled as a Other: converting`:                       true,
		`Thing in version "v1" cannot be handled as a Thing: json: cannot unmarshal number`:    false,
		`the API version in the data (a/v1) does not match the expected API version (a/v2)`:    true,
		`Unable to find "things" that match label selector "", field selector "a": no support`: false,
	} {
		assert.Equal(t, want, Misplaced(apierrors.NewBadRequest(message)), message)
	}
	assert.True(t, Misplaced(apierrors.NewMethodNotSupported(things, "patch")))
	assert.False(t, Misplaced(apierrors.NewNotFound(things, "x")))
	assert.False(t, Misplaced(apierrors.NewForbidden(things, "x", errors.New("no"))))
	assert.False(t, Misplaced(errors.New("x")))
	assert.False(t, Misplaced(nil))
}
