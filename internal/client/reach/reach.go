// Package reach makes the text of an error begin with what its reader must know first: that the
// API server cannot be reached, and at which address.
package reach

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/heard"
)

// unreachable is an error whose text is reordered. It unwraps to the original error, so errors.Is
// and errors.As still work.
type unreachable struct {
	err    error
	server string
	cause  error  // the transport's error
	doing  string // the rest of err's text, which says what was being done
}

func (u *unreachable) Error() string {
	return fmt.Sprintf("cannot reach the API server at %s: %v (%s)", u.server, u.cause, u.doing)
}

func (u *unreachable) Unwrap() error { return u.err }

// First returns an error whose text begins with the server that cannot be reached, if that is the
// reason of err; otherwise err itself. A caller that wraps such an error with more text calls
// First again:
//
//	run x: watch y: Get "https://a:1/api": dial tcp a:1: connect: connection refused
//	cannot reach the API server at https://a:1: dial tcp a:1: connect: connection refused (run x: watch y)
//
// Any answer of the server means that it can be reached. What a terminal would obey is escaped.
func First(err error) error { return heard.Error(plain.Error(first(err))) }

func first(err error) error {
	var inner *unreachable
	if errors.As(err, &inner) {
		if doing, ok := strings.CutSuffix(err.Error(), ": "+inner.Error()); ok {
			return &unreachable{err, inner.server, inner.cause, doing + ": " + inner.doing}
		}
		return err
	}
	var request *url.Error
	if !errors.As(err, &request) || !transport(request.Err) {
		return err
	}
	doing, ok := strings.CutSuffix(err.Error(), ": "+request.Error())
	server, parsed := url.Parse(request.URL)
	if !ok || parsed != nil {
		return err
	}
	return &unreachable{err, server.Scheme + "://" + server.Host, request.Err, doing}
}

// transport reports whether a request failed because it got no trusted connection. A request may
// also fail before it is sent because there are no credentials; that is another reason.
func transport(err error) bool {
	var other *url.Error
	if errors.As(err, &other) {
		return false // another server, which provides credentials, cannot be reached
	}
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &network), errors.As(err, &certificate):
		return true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, http.ErrSchemeMismatch):
		return true
	}
	// in the handshake, or waiting for an answer
	return errors.As(err, &timeout) && timeout.Timeout()
}
