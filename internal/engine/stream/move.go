package stream

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/source"
)

// OpenElsewhere opens the stream's watch over another connection, see
// [reflector.Reflector.OpenElsewhere]. It is no error if the stream's own requests fail in the same
// way.
func (s *Stream) OpenElsewhere(ctx context.Context, elsewhere bool) (*reflector.Opened, error) {
	w, err := s.reflector.OpenElsewhere(ctx, elsewhere)
	if err != nil && !s.alreadyFailsLike(err) {
		return nil, s.requests.Named(err)
	}
	return w, nil
}

// HandOver hands over what OpenElsewhere has opened, nil for nothing.
func (s *Stream) HandOver(w *reflector.Opened) { s.reflector.HandOver(w) }

// alreadyFailsLike reports whether the stream's own requests fail in the same way now. An error
// over another connection then says nothing against that connection. A refusal of the credentials
// always does.
func (s *Stream) alreadyFailsLike(err error) bool {
	s.mu.Lock()
	now := s.health.err
	s.mu.Unlock()
	switch {
	case now == nil, apierrors.IsUnauthorized(err):
		return false
	case errors.Is(err, source.ErrNoAnswer):
		return errors.Is(now, source.ErrNoAnswer)
	}
	reason := apierrors.ReasonForError(err)
	return reason != metav1.StatusReasonUnknown && reason == apierrors.ReasonForError(now)
}
