package nginx

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Config is all that nginx serves. It is a value: the same objects give the same Config, whatever
// the order in which they came.
type Config struct {
	Settings Settings
	// Servers are in the order of address, port and host. No two have the same three.
	Servers []Server
	// Upstreams has the endpoints of each upstream that servers name, as "address:port" (IPv6 in
	// brackets), sorted. An upstream without endpoints answers 503.
	Upstreams map[string][]string
	// Certificates by their ID.
	Certificates map[string]Certificate
}

// Settings are those of the whole gateway.
type Settings struct {
	Workers        int           // 0: one for each core
	Connections    int           // of each worker
	MaxBodyBytes   int64         // 0: no limit
	ConnectTimeout time.Duration // to an endpoint
	ReadTimeout    time.Duration // between two reads from an endpoint, and two writes to it
	KeepAlive      time.Duration // of an idle connection of a client
	DrainTimeout   time.Duration // how long workers of the last configuration may finish
	AccessLog      bool
	ServerTokens   bool
	ProxyHeaders   bool // X-Forwarded-For, -Proto, -Host, -Port and X-Real-IP
	RetryEndpoints int  // how many endpoints a request is tried on; 1 is no other try
	// KeepConnections is how many idle connections to endpoints each worker keeps: this many for
	// each upstream, all in one pool with Lua.
	KeepConnections int
}

// Object names the object that a part of the configuration comes from.
type Object struct {
	Kind, Namespace, Name string
	UID                   types.UID
	Version               string // its resource version
}

// Server is what is served for a host at a port.
type Server struct {
	Address string // to listen at: an IP address, or empty for all
	Port    int    // to listen at
	TLS     bool
	// Host is a name, a wildcard like *.example.com (which stands for any number of labels), or
	// empty for each host that has no server. A server with another text is left out.
	Host        string
	Certificate string // ID, if TLS. Empty: no certificate is usable, and handshakes are refused.
	// Listener, if not empty, names what a connection over TLS must have been made for: a host, or
	// "*". The Listener of the server with the narrowest Host that has the connection's name counts.
	// Requests of other connections are answered with 421, so that clients make another one.
	Listener string
	// Source is the object at fault if nginx refuses the server itself.
	Source Object
	// Locations are in the order of their paths: exact ones, prefixes from the longest to the
	// shortest, regular expressions in the order in which they are tried. No two have the same
	// path and match.
	Locations []Location
}

// PathMatch says how a location's path selects requests.
type PathMatch string

// The matches of paths. Prefix is by elements: /a selects /a, /a/ and /a/b, and not /ab.
const (
	Exact  PathMatch = "Exact"
	Prefix PathMatch = "Prefix"
	Regex  PathMatch = "Regex" // see CheckRegex; case-sensitive, from the beginning of the path
)

// Location is what is served for a path. A request goes to an exact path, or else to the first
// regular expression that selects it, or else to the longest prefix.
type Location struct {
	Path  string
	Match PathMatch
	// Except are prefixes whose requests a regular expression does not take.
	Except []string
	// Rules are tried in their order. The first one whose conditions hold is used; without one the
	// answer is 404. So that such a request goes to the next shorter prefix, package translate
	// adds the rules of that prefix after the location's own.
	Rules []Rule
}

// Rule says what becomes of a request.
type Rule struct {
	Source     Object
	Conditions []Condition // all must hold

	// One of these three. Status is the answer if it is not 0.
	Status   int
	Redirect *Redirect
	Backends []Backend // one of them, by their weights

	// MatchedPrefix is the prefix that the rule was written for: what Redirect and Rewrite
	// replace. It differs from the location's path where the rule stands in a longer location.
	MatchedPrefix   string
	Rewrite         *Rewrite
	RequestHeaders  HeaderChanges
	ResponseHeaders HeaderChanges
	// Timeout of an endpoint's answer. 0: that of the settings.
	Timeout time.Duration
}

// ConditionKind is what a condition looks at.
type ConditionKind string

// What conditions look at.
const (
	Header ConditionKind = "Header"
	Query  ConditionKind = "Query"
	Method ConditionKind = "Method"
)

// Condition is one that a request meets, or does not.
type Condition struct {
	Kind  ConditionKind
	Name  string // of the header or parameter
	Value string
	Regex bool // Value is a regular expression (see CheckRegex) for the whole value
}

// Backend is a share of a rule's requests.
type Backend struct {
	Upstream string // empty: nothing can serve these requests, and the answer is 500
	Weight   int    // more than 0
	// Headers of the request, changed for this backend after those of the rule.
	RequestHeaders  HeaderChanges
	ResponseHeaders HeaderChanges
}

// Redirect answers with another location. What is empty stays as in the request.
type Redirect struct {
	Status int // 301, 302, 303, 307 or 308
	Scheme string
	Host   string
	Port   int // 0: the well-known one of Scheme if that is set, or that of the request
	// Path, if not nil, replaces the whole path, or the matched prefix.
	Path *PathChange
}

// Rewrite changes what the endpoint is asked for.
type Rewrite struct {
	Host string
	Path *PathChange
}

// PathChange replaces a path as a whole, or the prefix that the rule matched.
type PathChange struct {
	Full bool
	To   string
}

// HeaderChanges are made in the order Remove, Set, Add.
type HeaderChanges struct {
	Set, Add []HeaderValue
	Remove   []string
}

// HeaderValue is a header with its value, as written: nothing in it is a variable of nginx.
type HeaderValue struct{ Name, Value string }

// Certificate is a certificate with its key, both in PEM.
type Certificate struct {
	Source Object
	Chain  []byte
	Key    []byte
}
