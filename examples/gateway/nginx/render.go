package nginx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// RenderOptions are what a rendered configuration needs to know of the machine.
type RenderOptions struct {
	Dir      string   // the gateway's folder
	User     string   // and group, of workers, if nginx runs as root
	IPv6     bool     // listen at all IPv6 addresses where a server listens at all addresses
	HTTP2On  bool     // nginx 1.25.1 and newer: http2 is a directive
	Lua      bool     // endpoints come from balancer.lua
	Modules  []string // files to load
	ErrorLog string   // a file or stderr
}

// Rendering is a configuration as nginx reads it.
type Rendering struct {
	Text  []byte
	Hash  string // of the text; GET /version at the control socket answers it
	Spans []Span
}

// Span says which object some lines come from.
type Span struct {
	First, Last int // lines, from 1
	Source      Object
}

// Render makes the one file that nginx reads. The same Config makes the same text. It never fails:
// what has no meaning for nginx (a header's name with a space) is left out.
func Render(c *Config, o RenderOptions) Rendering {
	r := &renderer{config: c, options: o, names: map[string]string{}}
	var servers writer
	servers.depth = 1
	for _, group := range listeners(c.Servers) {
		r.listener(&servers, group)
	}
	var last writer
	last.depth = 1
	r.upstreams(&last)
	r.control(&last)
	last.depth = 0
	last.line("}")

	var first writer
	r.head(&first, strings.Repeat("0", hashLength))
	sum := sha256.Sum256([]byte(first.text() + r.maps.text() + servers.text() + last.text()))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	first = writer{}
	r.head(&first, hash)
	for _, part := range []*writer{&r.maps, &servers, &last} {
		first.append(part)
	}
	return Rendering{Text: []byte(first.text()), Hash: hash, Spans: first.spans}
}

const hashLength = 32

var hashLine = regexp.MustCompile(`(?m)^# configuration ([0-9a-f]+)$`)

// hashOf returns the hash in a rendered text.
func hashOf(text []byte) string {
	if m := hashLine.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// renderer makes one configuration.
type renderer struct {
	config  *Config
	options RenderOptions
	maps    writer            // variables that parts of servers use
	names   map[string]string // of these variables, by what defines them
	bodies  int               // named locations
}

// writer collects lines, and which object each comes from.
type writer struct {
	lines  []string
	depth  int
	source Object
	spans  []Span
}

func (w *writer) line(format string, args ...any) {
	w.lines = append(w.lines, strings.Repeat("    ", w.depth)+fmt.Sprintf(format, args...))
	if w.source == (Object{}) {
		return
	}
	at := len(w.lines)
	if n := len(w.spans); n > 0 && w.spans[n-1].Source == w.source && w.spans[n-1].Last == at-1 {
		w.spans[n-1].Last = at
		return
	}
	w.spans = append(w.spans, Span{First: at, Last: at, Source: w.source})
}

// block writes a block of lines.
func (w *writer) block(head string, body func()) {
	w.line("%s {", head)
	w.depth++
	body()
	w.depth--
	w.line("}")
}

// of writes what comes from an object.
func (w *writer) of(source Object, body func()) {
	before := w.source
	w.source = source
	body()
	w.source = before
}

func (w *writer) append(part *writer) {
	for _, s := range part.spans {
		w.spans = append(w.spans, Span{First: s.First + len(w.lines), Last: s.Last + len(w.lines), Source: s.Source})
	}
	w.lines = append(w.lines, part.lines...)
}

func (w *writer) text() string {
	if len(w.lines) == 0 {
		return ""
	}
	return strings.Join(w.lines, "\n") + "\n"
}

// String names an object in comments of the configuration and in errors.
func (o Object) String() string {
	return clean(strings.TrimSpace(o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")))
}

// variable returns the name of a variable that these lines define, and writes them if they are
// new.
func (r *renderer) variable(kind string, source Object, head string, lines ...string) string {
	key := head + "\n" + strings.Join(lines, "\n")
	if name, ok := r.names[key]; ok {
		return name
	}
	name := fmt.Sprintf("%s%d", kind, len(r.names)+1)
	r.names[key] = name
	r.maps.depth = 1
	r.maps.of(source, func() {
		r.maps.block(head+" $"+name, func() {
			for _, line := range lines {
				r.maps.line("%s", line)
			}
		})
	})
	return name
}

// head writes what is before the servers.
func (r *renderer) head(w *writer, hash string) {
	s, o := r.config.Settings, r.options
	w.line("# The gateway writes this file. What is changed here is lost.")
	w.line("# configuration %s", hash)
	for _, module := range o.Modules {
		w.line("load_module %s;", fixed(module))
	}
	if o.User != "" {
		w.line("user %s;", o.User)
	}
	workers := "auto"
	if s.Workers > 0 {
		workers = fmt.Sprint(s.Workers)
	}
	w.line("worker_processes %s;", workers)
	w.line("worker_shutdown_timeout %s;", duration(s.drain(), 0))
	w.line("pid %s;", fixed(o.Dir+"/nginx.pid"))
	w.line("error_log %s;", fixed(o.ErrorLog))
	w.line("pcre_jit off; # it does not count all steps of a match: see bounded in quote.go")
	w.block("events", func() {
		w.line("worker_connections %d;", positive(s.Connections, 4096))
	})
	w.line("http {")
	w.depth++
	r.lua(w, hash)
	r.http(w)
	r.proxy(w)
}

// http writes what all servers share.
func (r *renderer) http(w *writer) {
	s, o := r.config.Settings, r.options
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		w.line("%s_temp_path %s;", kind, fixed(o.Dir+"/temp/"+kind))
	}
	switch {
	case !s.AccessLog:
		w.line("access_log off;")
	case o.ErrorLog == "stderr":
		w.line("access_log /dev/stdout;")
	default:
		w.line("access_log %s;", fixed(o.Dir+"/access.log"))
	}
	w.line("server_tokens %s;", onOff(s.ServerTokens))
	w.line("client_max_body_size %d;", s.MaxBodyBytes)
	w.line("keepalive_timeout %s;", duration(s.KeepAlive, 75*time.Second))
	w.line("server_names_hash_max_size 16384;")
	w.line("server_names_hash_bucket_size 512;")
	w.line("map_hash_max_size 16384;")
	w.line("map_hash_bucket_size 512;")
	w.line("variables_hash_max_size 16384;")
	w.line("variables_hash_bucket_size 128;")
	w.line("proxy_headers_hash_max_size 4096;")
	w.line("proxy_headers_hash_bucket_size 512;")
	w.line("ssl_protocols TLSv1.2 TLSv1.3;")
	w.line("ssl_session_cache shared:tls:10m;")
}

// proxy writes how endpoints are asked, unless a rule says otherwise.
func (r *renderer) proxy(w *writer) {
	s := r.config.Settings
	w.line(`geo $dollar { default "$"; }`)
	// Endpoints are told the host that chose the route, which is that of the URL if a client sends
	// another one in Host. A port is known of the same host alone.
	w.line(`map "$host $http_host" $asked_port { default ""; "~*^([^ ]+) \1(?<port_of_host>:[0-9]+)$" $port_of_host; }`)
	w.line(`map $http_upgrade $upgrade { default ""; "~*^websocket$" websocket; }`)
	w.line(`map $upgrade $connection_upgrade { "" ""; default upgrade; }`)
	w.line(`map $http_cdn_loop $passed { "" %s; default "$http_cdn_loop, %[1]s"; }`, loopMark)
	w.line(`map $http_cdn_loop $looped { default 0; "~%s" 1; }`, strings.Repeat(loopMark+".*", mostRounds-1)+loopMark)
	w.line(`map $request_uri $asked_path { default /; "~^(?<path_of_uri>[^?]+)" $path_of_uri; }`)
	w.line("proxy_http_version 1.1;")
	w.line("proxy_connect_timeout %s;", duration(s.ConnectTimeout, 5*time.Second))
	w.line("proxy_read_timeout %s;", duration(s.ReadTimeout, time.Minute))
	w.line("proxy_send_timeout %s;", duration(s.ReadTimeout, time.Minute))
	// With one try, too: a kept connection that the endpoint has closed is no try.
	w.line("proxy_next_upstream error timeout;")
	w.line("proxy_next_upstream_tries %d;", positive(s.RetryEndpoints, 1))
	// An endpoint must not choose another location, or what else a client gets.
	w.line("proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Charset;")
	r.requestHeaders(w, r.proxied())
}

// drain is how long workers of the last configuration may finish.
func (s Settings) drain() time.Duration {
	if s.DrainTimeout <= 0 {
		return time.Minute
	}
	return s.DrainTimeout
}

func duration(d, otherwise time.Duration) string {
	if d <= 0 {
		d = otherwise
	}
	return fmt.Sprintf("%dms", max(1, d.Milliseconds()))
}

func positive(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// sortedKeys returns the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
