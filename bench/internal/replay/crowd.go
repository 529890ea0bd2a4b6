package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Crowd is a server of any number of pods, in protobuf. It makes each pod when it is asked for,
// and holds none of them. Lists are in pages, or streamed. Events change one pod after the other:
// event e, from 0, changes pod e, and begins with the first pod again after the last. It has no
// services and no config maps.
type Crowd struct {
	pods    int
	events  atomic.Int64 // that have happened
	item    template     // of a list
	added   template
	changed template
}

const (
	// ChangePath makes events: n of them at once, or with rate and seconds as many each second.
	// The answer is the number of the last event.
	ChangePath = "/change"

	firstVersion = 1_000_000_000 // of pods that no event has changed
	crowdVersion = 2_000_000_000 // of lists before the first event

	// chunk is how many pods are written at once.
	chunk = 16
)

// NewCrowd makes a server of pods.
func NewCrowd(pods int) (*Crowd, error) {
	p, err := crowdPod()
	if err != nil {
		return nil, err
	}
	raw, err := p.Marshal()
	if err != nil {
		return nil, err
	}
	return &Crowd{
		pods: pods, item: newTemplate(field(nil, 2, raw)), added: newTemplate(framed(watch.Added, "Pod", raw)),
		changed: newTemplate(framed(watch.Modified, "Pod", raw)),
	}, nil
}

// ServeCrowd runs a server on the loopback interface, and prints its address. It serves until
// stdin ends.
func ServeCrowd(pods int, stdin io.Reader, stdout io.Writer) error {
	crowd, err := NewCrowd(pods)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: crowd}
	defer func() { _ = server.Close() }()
	go func() { _ = server.Serve(listener) }() // ends on Close
	if _, err := fmt.Fprintln(stdout, "http://"+listener.Addr().String()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, stdin)
	return err
}

// CrowdKey is the namespace/name of the pod that an event changes.
func CrowdKey(pods, event int) string {
	n := event % pods
	return fmt.Sprintf("team-%06d/app-%07d-7c9d8b6f54-%08d", n%20, n/10, n)
}

// CrowdMark is what that pod shows after the event.
func CrowdMark(event int) string { return fmt.Sprintf("%012d", event+1) }

// after is a pod as it is after a number of events.
func (c *Crowd) after(n, events int) member {
	if events <= n {
		return member{number: n, version: firstVersion + n}
	}
	last := n + (events-1-n)/c.pods*c.pods
	return member{number: n, version: crowdVersion + last + 1, mark: last + 1}
}

func (c *Crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kind := map[string]string{"/api/v1/pods": "Pod", "/api/v1/services": "Service", "/api/v1/configmaps": "ConfigMap"}[r.URL.Path]
	switch {
	case kind != "" && !strings.Contains(r.Header.Get("Accept"), protobufType):
		http.Error(w, "it speaks protobuf alone", http.StatusNotAcceptable)
	case kind != "" && (q.Get("watch") == "true" || q.Get("watch") == "1"):
		c.watch(w, r, kind)
	case kind != "":
		c.list(w, r, kind)
	case r.URL.Path == ChangePath:
		c.change(w, r)
	default:
		code, body := discovery(r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
	}
}

// change makes events.
func (c *Crowd) change(w http.ResponseWriter, r *http.Request) {
	number := func(name string) int {
		n, _ := strconv.Atoi(r.URL.Query().Get(name)) // 0 if it is not there
		return n
	}
	c.events.Add(int64(number("n")))
	if rate, seconds := number("rate"), number("seconds"); rate > 0 {
		begun, before := time.Now(), c.events.Load()
		for ticks := time.NewTicker(tick); ; <-ticks.C {
			passed := min(time.Since(begun), time.Duration(seconds)*time.Second)
			c.events.Store(before + int64(passed)*int64(rate)/int64(time.Second))
			if passed == time.Duration(seconds)*time.Second {
				ticks.Stop()
				break
			}
		}
	}
	_ = json.NewEncoder(w).Encode(c.events.Load() - 1) // a client that has gone needs no answer
}

// list answers with a page of pods, from the one that the token names. All pages have the state of
// the first one: what a pod was like after a number of events is known without having been kept.
func (c *Crowd) list(w http.ResponseWriter, r *http.Request, kind string) {
	w.Header().Set("Content-Type", protobufType)
	from, events := 0, int(c.events.Load())
	version := events
	if token := r.URL.Query().Get("continue"); token != "" {
		if _, err := fmt.Sscanf(token, "%d-%d", &from, &version); err != nil || from < 0 || from > c.pods || version > events {
			http.Error(w, "no such token", http.StatusBadRequest)
			return
		}
	}
	most := c.pods
	if kind != "Pod" {
		most = 0
	}
	until, token := most, ""
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit > 0 && from+limit < most {
		until = from + limit
		token = fmt.Sprintf("%d-%d", until, version)
	}
	size := max(0, until-from) * len(c.item.bytes)
	if _, err := w.Write(listStart(kind, digits(crowdVersion+version), token, size)); err != nil {
		return
	}
	c.write(w, c.item, from, until, version)
}

// write writes pods as they are after a number of events. It reports whether the client is there.
func (c *Crowd) write(w io.Writer, t template, from, until, events int) bool {
	var out []byte
	for n := from; n < until; n++ {
		if out = t.append(out, c.after(n, events)); (n-from)%chunk != chunk-1 && n != until-1 {
			continue
		}
		if _, err := w.Write(out); err != nil {
			return false
		}
		out = out[:0]
	}
	return true
}

// watch answers with the events behind a version, after the state at it if that is wanted, until
// the client ends it or its time is over.
func (c *Crowd) watch(w http.ResponseWriter, r *http.Request, kind string) {
	q := r.URL.Query()
	w.Header().Set("Content-Type", protobufType+";stream=watch")
	flush := http.NewResponseController(w).Flush
	from := int(c.events.Load())
	if rv, err := strconv.Atoi(q.Get("resourceVersion")); err == nil && rv >= crowdVersion {
		from = rv - crowdVersion
	}
	if q.Get("sendInitialEvents") == "true" {
		if kind == "Pod" && !c.write(w, c.added, 0, c.pods, from) {
			return
		}
		if _, err := w.Write(endOfList(kind, digits(crowdVersion+from))); err != nil {
			return
		}
	}
	if flush() != nil {
		return
	}
	var over <-chan time.Time
	if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil && seconds > 0 {
		over = time.After(time.Duration(seconds) * time.Second)
	}
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	var out []byte
	for {
		events := int(c.events.Load())
		for ; kind == "Pod" && from < events; from++ {
			out = c.changed.append(out, member{from % c.pods, crowdVersion + from + 1, from + 1})
			if len(out) < bufferBytes && from < events-1 {
				continue
			}
			if _, err := w.Write(out); err != nil || flush() != nil {
				return
			}
			out = out[:0]
		}
		select {
		case <-ticks.C:
		case <-over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// bufferBytes is how much a watch writes at once.
const bufferBytes = 256 << 10

// endOfList is the bookmark behind the initial events of a watch.
func endOfList(kind, version string) []byte {
	// The metadata of every kind are field 1, and those of a bookmark are all that it has.
	o := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	raw, err := o.ObjectMeta.Marshal()
	if err != nil {
		panic(err) // it contains only strings
	}
	return framed(watch.Bookmark, kind, field(nil, 1, raw))
}
