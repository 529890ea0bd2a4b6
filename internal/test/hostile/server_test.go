package hostile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates/katestest"
)

// server is a small API server with config maps in the namespace "default". A test says what it
// answers watches with.
type server struct {
	network  *katestest.Network
	garbling *garbling
	http     *httptest.Server
	json     bool // it does not know protobuf
	streams  bool // it streams lists (KEP-3157)
	zips     bool // it compresses streamed lists as Kubernetes 1.37 does, for clients that ask for it

	mu      sync.Mutex
	version int
	objects map[string]*corev1.ConfigMap
	log     []logged
	changed chan struct{} // closed at the next event
	cut     chan struct{} // closed when the open watches end
	lie     func(*answer) // in place of the truth; nil: the truth
	lists   int
	watches int
	written int // the most bytes that a lie has written
	members int // of gzip
}

// logged is an event.
type logged struct {
	kind   string
	object *corev1.ConfigMap
}

// newServer starts a server. With TLS, it speaks HTTP/2.
func newServer(t *testing.T, secure bool) *server {
	t.Helper()
	s := &server{
		network: katestest.NewNetwork(t), version: 100, objects: make(map[string]*corev1.ConfigMap),
		changed: make(chan struct{}), cut: make(chan struct{}),
	}
	listener, err := s.network.Listen("api.test:443")
	if err != nil {
		t.Fatal(err)
	}
	s.garbling = &garbling{Listener: listener}
	s.http = &httptest.Server{Listener: s.garbling, EnableHTTP2: secure, Config: &http.Server{Handler: s, ErrorLog: quiet}}
	if secure {
		s.http.StartTLS()
	} else {
		s.http.Start()
	}
	t.Cleanup(func() { s.tell(nil); s.network.Reset(); s.http.Close() })
	return s
}

func (s *server) config() *rest.Config {
	c := &rest.Config{Host: "http://api.test:443", Dial: s.network.DialContext}
	if s.http.TLS != nil {
		c.Host, c.Insecure = "https://api.test:443", true
	}
	return c
}

// tell changes what the server says to watches, and ends the open ones. Nil is the truth.
func (s *server) tell(lie func(*answer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lie = lie
	s.lists, s.watches = 0, 0
	close(s.cut)
	s.cut = make(chan struct{})
}

// asked returns how many lists and watches came since the last tell.
func (s *server) asked() (lists, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.watches
}

// put makes or changes an object, as another client does.
func (s *server) put(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	kind := "MODIFIED"
	if s.objects[name] == nil {
		kind = "ADDED"
	}
	o := configMap(name, strconv.Itoa(s.version))
	s.objects[name] = o
	s.log = append(s.log, logged{kind, o})
	close(s.changed)
	s.changed = make(chan struct{})
}

func configMap(name, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version,
		},
		Data: map[string]string{"at": version},
	}
}

const configMaps = "/configmaps"

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{server: s, w: w, r: r, protobuf: !s.json && strings.Contains(r.Header.Get("Accept"), "protobuf")}
	a.short = strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	switch path, query := r.URL.Path, r.URL.Query(); {
	case path == "/api":
		a.say(object{"kind": "APIVersions", "versions": []string{"v1"}})
	case path == "/apis":
		a.say(object{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
	case path == "/api/v1":
		verbs := []string{"get", "list", "watch"}
		a.say(object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []any{
			object{"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": verbs},
			object{"name": "namespaces", "kind": "Namespace", "namespaced": false, "verbs": verbs},
		}})
	case !strings.HasSuffix(path, configMaps):
		a.status(http.StatusNotFound, "NotFound")
	case !query.Has("watch"):
		s.count(&s.lists, query.Get("limit") != "1") // that is a probe
		a.list()
	case query.Get("sendInitialEvents") == "true" && !s.streams:
		a.status(http.StatusUnprocessableEntity, "Invalid")
	default:
		s.mu.Lock()
		lie := s.lie
		a.cut = s.cut
		s.mu.Unlock()
		s.count(&s.watches, true)
		if _, watches := s.asked(); watches > mostLies { // a loop without a pause: time stands still
			a.start()
			a.hold()
			return
		}
		if lie != nil {
			lie(a)
			s.wrote(a.n)
			return
		}
		a.watch()
	}
}

func (s *server) count(n *int, counts bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if counts {
		*n++
	}
}

func (s *server) wrote(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = max(s.written, n)
}

// mostLies is how many watches are answered with a lie. No test needs as many.
const mostLies = 1000

type object = map[string]any

// answer is the answer to one request.
type answer struct {
	*server
	w        http.ResponseWriter
	r        *http.Request
	protobuf bool
	short    bool          // metadata alone was asked for
	cut      chan struct{} // of a watch
	zipped   bool          // each write is a member of gzip
	n        int           // bytes written
}

func (a *answer) say(body any) {
	a.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(a.w).Encode(body) // a client that has gone needs no answer
}

func (a *answer) status(code int, reason string) {
	a.w.Header().Set("Content-Type", "application/json")
	a.w.WriteHeader(code)
	_ = json.NewEncoder(a.w).Encode(failure(code, reason))
}

func failure(code int, reason string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: metav1.StatusReason(reason), Message: "says " + reason,
	}
}

// list answers with the truth.
func (a *answer) list() {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	list.ResourceVersion = strconv.Itoa(a.version)
	short := &metav1.PartialObjectMetadataList{ListMeta: list.ListMeta}
	short.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	for _, name := range slices.Sorted(maps.Keys(a.objects)) {
		list.Items = append(list.Items, *a.objects[name])
		short.Items = append(short.Items, *shortened(a.objects[name]))
	}
	var body runtime.Object = list
	if a.short {
		body = short
	}
	if !a.protobuf {
		a.say(body)
		return
	}
	a.w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	_, _ = a.w.Write(encode(body, true))
}

func shortened(o metav1.ObjectMetaAccessor) *metav1.PartialObjectMetadata {
	short := &metav1.PartialObjectMetadata{ObjectMeta: *o.GetObjectMeta().(*metav1.ObjectMeta)}
	short.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return short
}

// encode encodes an object that has its kind.
func encode(o runtime.Object, proto bool) []byte {
	var out strings.Builder
	err := error(nil)
	if proto {
		err = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &out)
	} else {
		err = json.NewEncoder(&out).Encode(o)
	}
	if err != nil {
		panic(err)
	}
	return []byte(out.String())
}

// watch answers with the truth, from a version on.
func (a *answer) watch() {
	since, _ := strconv.Atoi(a.r.URL.Query().Get("resourceVersion"))
	streamed := a.r.URL.Query().Get("sendInitialEvents") == "true"
	if a.zips && streamed && a.r.Header.Get("Accept-Encoding") == "gzip" {
		a.w.Header().Set("Content-Encoding", "gzip")
		a.zipped = true
	}
	a.start()
	if streamed {
		since = a.initial()
	}
	for {
		a.mu.Lock()
		events, changed := slices.Clone(a.log), a.changed
		a.mu.Unlock()
		for _, e := range events {
			if at, _ := strconv.Atoi(e.object.ResourceVersion); at > since {
				since = at
				a.event(e.kind, e.object)
			}
		}
		select {
		case <-changed:
		case <-a.cut:
			return
		case <-a.r.Context().Done():
			return
		}
	}
}

// items sends the initial events of a streamed list. It returns their version.
func (a *answer) items() int {
	a.mu.Lock()
	version, all := a.version, maps.Clone(a.objects)
	a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a.event("ADDED", all[name])
	}
	return version
}

// initial streams a list, with the bookmark that ends it.
func (a *answer) initial() int {
	version := a.items()
	a.bookmark(strconv.Itoa(version), true)
	return version
}

// bookmark sends a bookmark, and marks it as the end of a list.
func (a *answer) bookmark(version string, ends bool) {
	b := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	b.ResourceVersion = version
	if ends {
		b.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	a.event("BOOKMARK", b)
}

// start sends the header of a watch.
func (a *answer) start() {
	as := "application/json"
	if a.protobuf {
		as = "application/vnd.kubernetes.protobuf;stream=watch"
	}
	a.w.Header().Set("Content-Type", as)
	a.flush()
}

func (a *answer) flush() { _ = http.NewResponseController(a.w).Flush() }

// event sends an event in the form that was asked for.
func (a *answer) event(kind string, o runtime.Object) {
	if c, ok := o.(*corev1.ConfigMap); ok && a.short {
		o = shortened(c)
	}
	a.raw(kind, encode(o, a.protobuf))
}

// raw sends an event with these bytes for an object.
func (a *answer) raw(kind string, object []byte) {
	if !a.protobuf {
		a.write([]byte(`{"type":"`+kind+`","object":`), object, []byte("}\n"))
		return
	}
	e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
	body, err := e.Marshal()
	if err != nil {
		panic(err)
	}
	a.frame(len(body), body)
}

// frame sends a frame of protobuf that says to have a length.
func (a *answer) frame(length int, body []byte) {
	a.write(binary.BigEndian.AppendUint32(nil, uint32(length)), body)
}

// write sends bytes. It reports whether the client still takes them.
func (a *answer) write(parts ...[]byte) bool {
	if a.zipped {
		parts = [][]byte{member(parts)}
		a.count(&a.members, true)
	}
	for _, p := range parts {
		n, err := a.w.Write(p)
		if a.n += n; err != nil {
			return false
		}
	}
	return http.NewResponseController(a.w).Flush() == nil
}

// member compresses bytes as Kubernetes 1.37 does before it flushes: it ends a block, then the
// member. So a client can read all of them before the next member begins.
func member(parts [][]byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	for _, p := range parts {
		_, _ = z.Write(p)
	}
	_ = z.Flush()
	_ = z.Close()
	return out.Bytes()
}

// endless sends a byte again and again until the client has gone.
func (a *answer) endless(c string) {
	for part := []byte(strings.Repeat(c, 4096)); a.write(part); {
	}
}

// text sends what a test says.
func (a *answer) text(s string) { _, _ = io.WriteString(a.w, s); a.flush() }

// hold keeps the watch open.
func (a *answer) hold() {
	select {
	case <-a.cut:
	case <-a.r.Context().Done():
	}
}

// wait lets a watch last as long as one that is no failure.
func (a *answer) wait() {
	select {
	case <-time.After(2 * time.Second):
	case <-a.r.Context().Done():
	}
}

// garbling is the listener of a server that can send bytes past TLS.
type garbling struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (g *garbling) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err == nil {
		g.mu.Lock()
		g.conns = append(g.conns, c)
		g.mu.Unlock()
	}
	return c, err
}

// garble writes bytes into the connections of the server that are no records of TLS.
func (a *answer) garble() {
	a.garbling.mu.Lock()
	conns := slices.Clone(a.garbling.conns)
	a.garbling.mu.Unlock()
	for _, c := range conns {
		_, _ = c.Write([]byte(strings.Repeat("garbage", 100)))
	}
}
