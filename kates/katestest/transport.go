package katestest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// transport puts the faults in front of one transport.
type transport struct {
	faults *Faults
	next   http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	f := t.faults
	request, rules := f.begin(requestOf(r))
	resp, err := t.answer(r, *request, rules)
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.wake()
	if err != nil {
		request.Err = err
		return nil, err
	}
	request.Status = resp.StatusCode
	if b, wrapped := resp.Body.(*body); wrapped {
		b.request = request
		f.bodies = append(f.bodies, b)
	}
	return resp, nil
}

// begin records a request, and returns the rules that hit it. The users' functions are called
// without the lock.
func (f *Faults) begin(r Request) (*Request, []*Rule) {
	f.mu.Lock()
	rules := slices.Clone(f.rules)
	f.mu.Unlock()
	rules = slices.DeleteFunc(rules, func(rule *Rule) bool { return !rule.when.match.matches(r) })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, &r)
	f.wake()
	return &r, slices.DeleteFunc(rules, func(rule *Rule) bool { return !rule.hit() })
}

// answer applies the rules until the head of the answer is there.
func (t *transport) answer(r *http.Request, request Request, rules []*Rule) (*http.Response, error) {
	resp, err := t.unsent(r, request, rules)
	if resp != nil || err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // the contract of RoundTripper demands it
		}
	} else {
		resp, err = t.next.RoundTrip(r)
	}
	if err != nil {
		return nil, err
	}
	came := time.Now()
	// that body is a connection, which is also written to
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = t.faults.open(r.Context(), resp.Body, rules)
		if slices.ContainsFunc(rules, func(r *Rule) bool { return r.kind == truncate }) {
			resp.ContentLength = -1 // a length would show that the body changes
			resp.Header.Del("Content-Length")
		}
	}
	for _, rule := range rules {
		switch rule.kind {
		case lose:
			err = fmt.Errorf("the answer is lost, by a test's rule: %w", io.ErrUnexpectedEOF)
		case holdAnswer:
			err = t.faults.until(r.Context(), rule, time.Time{})
		case delay:
			err = t.faults.until(r.Context(), rule, came.Add(rule.delay))
		}
		if err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
	}
	return resp, nil
}

// unsent applies the rules that act before a request is sent. A result of nil and no error means:
// send it.
func (t *transport) unsent(r *http.Request, request Request, rules []*Rule) (*http.Response, error) {
	for _, rule := range rules {
		switch rule.kind {
		case hold:
			if err := t.faults.until(r.Context(), rule, time.Time{}); err != nil {
				return nil, err
			}
		case fail:
			return nil, rule.err
		case status:
			return rule.response(r, request)
		}
	}
	return nil, nil
}

// until waits until the rule stops, or until due if that is not zero. If ctx ends first, it
// returns ctx's error.
func (f *Faults) until(ctx context.Context, rule *Rule, due time.Time) error {
	var timer <-chan time.Time
	if !due.IsZero() {
		t := time.NewTimer(time.Until(due))
		defer t.Stop()
		timer = t.C
	}
	for {
		f.mu.Lock()
		stopped, changed := rule.stopped, f.changed
		f.mu.Unlock()
		if stopped {
			return nil
		}
		select {
		case <-changed:
		case <-timer:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// response is the answer of a server that refuses.
func (r *Rule) response(req *http.Request, request Request) (*http.Response, error) {
	seconds := int((r.retryAfter + time.Second - 1) / time.Second)
	resource := schema.GroupResource{Group: request.Group, Resource: request.Resource}
	answer := apierrors.NewGenericServerResponse(r.code, request.Verb, resource, request.Name, "by a test's rule", seconds, true).ErrStatus
	answer.APIVersion, answer.Kind = "v1", "Status"
	if r.reason != "" {
		answer.Reason = r.reason
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode a Status: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
	if seconds > 0 {
		header.Set("Retry-After", strconv.Itoa(seconds))
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", r.code, http.StatusText(r.code)), StatusCode: r.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)), Request: req,
	}, nil
}
