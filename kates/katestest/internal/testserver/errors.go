package testserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// errNoPath is a path that nobody serves. Its answer is no Status.
var errNoPath = errors.New("404 page not found")

// bare is an error with a Status that has no details.
func bare(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// general is an error with a Status whose details name nothing.
func general(code int, message string) error {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", message, 0, false)
}

// statusOf makes a Status of an error. An error that has none is the server's: its Status has
// neither a reason nor details.
func statusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		return &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
		}
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}

// errMethod is a verb that a path does not have. For built-in kinds the server sees that before it
// knows the kind.
func errMethod(q *request) error {
	if q.kind.Custom == nil {
		return general(http.StatusMethodNotAllowed, "the server does not allow this method on the requested resource")
	}
	gr := q.kind.GR()
	if q.part == "" {
		return bare(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, q.Method+" is not supported on resources of kind "+gr.String())
	}
	return apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, q.Method, gr, "", "", 0, false)
}

func (s *Server) notFound(q *request) error { return apierrors.NewNotFound(q.kind.GR(), q.name) }

// written are the types of a body that is an object.
var written = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}

func unsupported(takes ...string) error {
	return bare(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(takes, ", "))
}

// notAcceptable is a form of answer that the server does not have. Anything at all may be wanted
// of a built-in kind: then the server sees it before it knows the kind.
func notAcceptable(k *kinds.Kind, anyKnown bool) error {
	types := runtime.ContentTypeJSON + ", " + runtime.ContentTypeYAML + ", " + runtime.ContentTypeProtobuf
	message := "only the following media types are accepted: " + types
	if k.Custom == nil && !anyKnown {
		return general(http.StatusNotAcceptable, message)
	}
	return bare(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, message)
}

// cannotBe is a body that is not of the kind.
func cannotBe(k *kinds.Kind, why string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", k.Kind, k.Version, k.Kind, why))
}

// patched is the error of a patch whose result is not of the kind.
func patched(err error) error {
	if err == nil || !apierrors.IsBadRequest(err) {
		return err
	}
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), "the patched object", err.Error())})
}
