// Package reach has the text of an error begin with what its reader has to know first: that the API server cannot be reached, and at
// which address.
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
)

// unreachable is an error whose text is put in another order. It unwraps to that error, so all that it is it still is.
type unreachable struct {
	err    error
	server string
	cause  error  // of the transport
	doing  string // the rest of err's text: what was being done
}

func (u *unreachable) Error() string {
	return fmt.Sprintf("cannot reach the API server at %s: %v (%s)", u.server, u.cause, u.doing)
}

func (u *unreachable) Unwrap() error { return u.err }

// First returns an error whose text begins with the server that cannot be reached, if err comes of that, and else err itself. Whoever
// says more of what was being done around such an error, calls it again:
//
//	run x: watch y: Get "https://a:1/api": dial tcp a:1: connect: connection refused
//	cannot reach the API server at https://a:1: dial tcp a:1: connect: connection refused (run x: watch y)
//
// An answer of the server, whatever it is, means that it can be reached.
func First(err error) error {
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

// transport reports whether a request has failed for want of a connection that can be trusted. It may fail otherwise without being sent,
// for credentials that cannot be had; then this is not what is wrong.
func transport(err error) bool {
	var other *url.Error
	if errors.As(err, &other) {
		return false // it was for another server's sake, which gives credentials
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
	return errors.As(err, &timeout) && timeout.Timeout() // of the handshake, or waiting for an answer
}
