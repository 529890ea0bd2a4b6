package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// event is one of a watch.
type event struct {
	kind   string
	object any
}

// watch is an open one. A goroutine reads it, and ends with it.
type watch struct {
	step   *step
	cancel context.CancelFunc
	events chan event
	done   chan struct{} // the goroutine has ended
	err    error         // why, if not at the end of the stream
}

// open opens the watch of a step.
func (r *run) open(s *step) (entry, error) {
	q, err := r.request(s)
	if err != nil {
		return entry{}, err
	}
	q.method = http.MethodGet
	ctx, cancel := context.WithCancel(context.Background())
	response, err := r.send(ctx, q)
	if err != nil {
		cancel()
		return entry{}, err
	}
	if response.StatusCode != http.StatusOK {
		defer cancel()
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			return entry{}, err
		}
		return decoded(response, content)
	}
	w := &watch{step: s, cancel: cancel, events: make(chan event), done: make(chan struct{})}
	next := jsonEvents(response.Body)
	if s.has("protobuf") {
		next = newProtobufEvents(response.Body).next
	}
	go w.run(ctx, response.Body, next)
	r.watches[s.save] = w
	return entry{code: http.StatusOK}, nil
}

func jsonEvents(body io.Reader) func() (event, error) {
	decoder := json.NewDecoder(body)
	return func() (e event, err error) {
		var raw struct {
			Type   string
			Object json.RawMessage
		}
		if err := decoder.Decode(&raw); err != nil {
			return e, err
		}
		e.kind = raw.Type
		return e, utiljson.Unmarshal(raw.Object, &e.object)
	}
}

func (w *watch) run(ctx context.Context, body io.Closer, next func() (event, error)) {
	defer close(w.done)
	defer func() { _ = body.Close() }()
	for {
		e, err := next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.err = err
			}
			return
		}
		select {
		case w.events <- e:
		case <-ctx.Done():
			return
		}
	}
}

// close ends the watch, and waits until its goroutine has ended.
func (w *watch) close() {
	w.cancel()
	<-w.done
}

// read reads events of a watch, as a step says.
func (r *run) read(ctx context.Context, s *step) (e entry, err error) {
	words := strings.Fields(s.target)
	w := r.watches[words[0]]
	if w == nil {
		return e, fmt.Errorf("no watch %q is open", words[0])
	}
	count := 0
	if s.verb == "NEXT" && len(words) > 1 {
		if count, err = strconv.Atoi(words[1]); err != nil {
			return e, err
		}
	}
	if s.verb == "CLOSE" {
		w.close()
		delete(r.watches, words[0])
		return e, nil
	}
	for {
		if s.verb == "NEXT" && len(e.events) == count {
			return e, nil
		}
		got, err := w.next(ctx)
		switch {
		case errors.Is(err, io.EOF) && s.verb == "END":
			return e, nil
		case errors.Is(err, io.EOF) && s.verb == "BOOKMARK":
			if _, err := r.open(w.step); err != nil {
				return e, err
			}
			w, e.events = r.watches[words[0]], nil
			continue
		case err != nil:
			return e, fmt.Errorf("after %v: %w", e.events, err)
		case s.verb == "BOOKMARK" || got.counts():
			e.events = append(e.events, got)
		}
		if s.verb == "BOOKMARK" && got.kind == "BOOKMARK" || s.verb == "UNTIL" && got.name() == words[1] {
			return e, nil
		}
	}
}

// next is the next event. It is io.EOF after the last one.
func (w *watch) next(ctx context.Context) (event, error) {
	select {
	case e := <-w.events:
		return e, nil
	case <-w.done:
		if w.err != nil {
			return event{}, w.err
		}
		return event{}, io.EOF
	case <-ctx.Done():
		return event{}, context.Cause(ctx)
	}
}

func (e event) metadata() map[string]any {
	object, _ := e.object.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	return metadata
}

func (e event) name() string {
	name, _ := e.metadata()["name"].(string)
	return name
}

// counts says whether the event is one that comes at a certain moment: a bookmark only if it ends
// the initial events.
func (e event) counts() bool {
	annotations, _ := e.metadata()["annotations"].(map[string]any)
	return e.kind != "BOOKMARK" || annotations["k8s.io/initial-events-end"] == "true"
}
