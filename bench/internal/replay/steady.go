package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/bench/internal/usage"
)

// Steady is a server of pods, services and config maps whose watches send the events of a
// [Schedule], each at its time. The schedule starts with the first request to [BeginPath]. A list
// has the state of its moment. A watch goes on from any version, and ends after the time that it
// was asked for.
type Steady struct {
	plan  Schedule
	kinds []kind
	tally tally
	begin sync.Once
	begun chan struct{} // closed when the events begin
	start time.Time     // set before begun is closed
}

const (
	// BeginPath starts the events. The answer is a [Begun].
	BeginPath = "/begin"
	// SentPath answers with what has been [Sent].
	SentPath = "/sent"

	// tick is how often events are sent.
	tick = 10 * time.Millisecond
	// most is how many events are written at once. All of them count as written when that begins.
	most = 64
)

// Begun is when the events of a server have started.
type Begun struct{ UnixNano int64 }

// NewSteady makes a server that has not started its events.
func NewSteady(plan Schedule) *Steady {
	return &Steady{plan: plan, kinds: kinds(plan.Objects, 0), begun: make(chan struct{})}
}

// ServeSteady runs a server on the loopback interface, and prints its address. It serves until
// stdin ends.
func ServeSteady(plan Schedule, stdin io.Reader, stdout io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: NewSteady(plan)}
	defer func() { _ = server.Close() }()
	go func() { _ = server.Serve(listener) }() // ends on Close
	if _, err := fmt.Fprintln(stdout, "http://"+listener.Addr().String()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, stdin)
	return err
}

// due returns how many events are due by now.
func (s *Steady) due() int {
	select {
	case <-s.begun:
		return s.plan.Due(time.Since(s.start))
	default:
		return 0
	}
}

// at returns an object as an event leaves it.
func (s *Steady) at(i int) object {
	k := s.kinds[i%Kinds]
	o := k.objects[i/Kinds%len(k.objects)].DeepCopyObject().(object)
	Mend(o, i)
	return o
}

// state returns a kind as it is after a number of events of all kinds.
func (s *Steady) state(at, events int) kind {
	k := s.kinds[at]
	k.objects = append([]object(nil), k.objects...)
	for j := range k.objects {
		if i := s.plan.Last(at, j, events); i >= 0 {
			k.objects[j] = s.at(i)
		}
	}
	k.version = listRV + events
	return k
}

// ServeHTTP answers discovery, lists and watches of all namespaces, and the requests of whoever
// measures.
func (s *Steady) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for i, k := range s.kinds {
		if r.URL.Path == "/api/v1/"+k.resource {
			s.serve(w, r, i)
			return
		}
	}
	code, body := http.StatusOK, any(nil)
	switch r.URL.Path {
	case BeginPath:
		s.begin.Do(func() {
			s.start = time.Now()
			close(s.begun)
		})
		body = Begun{s.start.UnixNano()}
	case SentPath:
		sent := s.tally.sent(s.plan)
		sent.Waited = usage.WaitedSeconds()
		body = sent
	default:
		code, body = discovery(r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}

// discovery answers a request for the kinds of the server.
func discovery(path string) (code int, body any) {
	type fields = map[string]any
	switch path {
	case "/api":
		return http.StatusOK, fields{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		return http.StatusOK, fields{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}}
	case "/api/v1":
		var all []fields
		for name, kind := range map[string]string{"pods": "Pod", "services": "Service", "configmaps": "ConfigMap"} {
			all = append(all, fields{"name": name, "kind": kind, "namespaced": true, "verbs": []string{"get", "list", "watch"}})
		}
		return http.StatusOK, fields{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": all}
	}
	return http.StatusNotFound, fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
}

// serve answers a list or a watch of a kind.
func (s *Steady) serve(w http.ResponseWriter, r *http.Request, at int) {
	mediaType := "application/json"
	if strings.Contains(r.Header.Get("Accept"), protobufType) {
		mediaType = protobufType
	}
	e, err := newEncoder(mediaType)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	q := r.URL.Query()
	isWatch := q.Get("watch") == "true" || q.Get("watch") == "1"
	from := s.due()
	var answer encodedKind
	if initial := q.Get("sendInitialEvents") == "true"; initial || !isWatch {
		if answer, err = e.kind(s.state(at, from)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	} else if rv, err := strconv.Atoi(q.Get("resourceVersion")); err == nil && rv > 0 {
		from = max(0, rv-listRV)
	}
	if !isWatch {
		w.Header().Set("Content-Type", mediaType)
		_, _ = w.Write(answer.list) // a client that has gone needs no answer
		return
	}
	if mediaType == protobufType {
		mediaType += ";stream=watch"
	}
	w.Header().Set("Content-Type", mediaType)
	ctx := r.Context()
	if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil && seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	s.tally.opened()
	s.watch(ctx, w, e, at, from, answer.initial)
}

// watch sends a stream: what is there, and the events of a kind at their times, until the context
// or the client ends.
func (s *Steady) watch(ctx context.Context, w http.ResponseWriter, e encoder, at, from int, initial []byte) {
	flush := http.NewResponseController(w).Flush
	if _, err := w.Write(initial); err != nil || flush() != nil {
		return
	}
	select {
	case <-s.begun:
	case <-ctx.Done():
		return
	}
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		var out bytes.Buffer
		var b Batch
		due := s.due()
		for ; from < due && b.Events < most; from++ {
			if from%Kinds != at {
				continue
			}
			if err := e.frame(&out, watch.Modified, s.at(from)); err != nil {
				return
			}
			if b.Events++; b.Events == 1 {
				b.First = from
			}
		}
		if b.Events > 0 {
			b.Began = time.Since(s.start)
			if _, err := w.Write(out.Bytes()); err != nil || flush() != nil {
				return
			}
			b.Ended = time.Since(s.start)
			s.tally.add(b)
		}
		if from < due && ctx.Err() == nil {
			continue // it is behind
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}
