package nginx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"syscall"
	"time"
)

// Options say which nginx serves, and where its files are.
type Options struct {
	// Dir is the gateway's folder. It is made if it is missing. One gateway at a time has it.
	Dir string
	// Binary is nginx' program. Empty: the one that is installed.
	Binary string
	// Modules is the folder of its modules. Empty: the one that it was built with.
	Modules string
	// External: somebody else starts nginx, with "-c Dir/nginx.conf", as soon as that file is
	// there, and starts it again if it ends: another container, with the same folder, the same
	// user, and processes that both see.
	External bool
	// ErrorLog is a file, or stderr. Empty: error.log in the folder.
	ErrorLog string
	// ReloadTimeout is how long nginx may take to start or to reload. 0: 30 s.
	ReloadTimeout time.Duration
	// Logger gets what happens to nginx. nil: nothing.
	Logger *slog.Logger
}

// Nginx is an nginx that serves. Apply is for one goroutine, and Push for one that may be another;
// Alive and Stats are for any.
type Nginx struct {
	options Options
	log     *slog.Logger
	found   installed
	lua     bool
	render  RenderOptions
	control control
	lock    *os.File

	pushed  pushed
	drain   time.Duration
	next    time.Time // when it may be started or reloaded again
	refused refusals
	last    struct {
		config    *Config
		rendering Rendering
	}

	mu    sync.Mutex // of stats alone
	stats Stats
}

// refusals of a configuration, by its hash.
type refusals struct {
	hash string
	verdict
}

// Stats are counts since Open, and the last state.
type Stats struct {
	Hash         string // of the configuration that serves
	Starts       int
	Reloads      int
	Refused      int           // configurations
	Checks       int           // runs of nginx that check one
	Pushed       int           // upstreams whose endpoints were sent
	LastReload   time.Time     // or start
	LastDuration time.Duration // of that
}

// Outcome says what Apply has done.
type Outcome struct {
	Hash     string // of the configuration that was asked for
	Active   bool   // it serves
	Reloaded bool   // nginx was reloaded or started
	Pushed   int    // upstreams whose endpoints were sent
	// Again, if not 0, is when to call Apply again: the configuration waits, for a reload a
	// second.
	Again time.Duration
	// Refused has the objects at fault if nginx refuses the configuration. The last one serves on.
	Refused []Refusal
	// Held has the namespaces of which more objects are at fault than Apply looks for: others must
	// not wait for that. The caller leaves out what has changed in them, and has Try find the rest.
	Held []Hold
	// Taken is where nginx cannot listen. The last configuration serves on, and the caller leaves
	// out the servers there.
	Taken []Taken
}

// Open takes a folder, and adopts an nginx that serves there. It starts none: the first Apply
// does.
func Open(o Options) (_ *Nginx, err error) {
	if o.ReloadTimeout <= 0 {
		o.ReloadTimeout = 30 * time.Second
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	n := &Nginx{options: o, log: o.Logger, drain: Settings{}.drain()}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if len(n.path(controlSocket)) > 100 {
		return nil, fmt.Errorf("the path of the folder %s is too long for a socket in it: choose a shorter one", o.Dir)
	}
	if n.found, err = find(o); err != nil {
		return nil, err
	}
	for _, sub := range []struct {
		name string
		mode os.FileMode
	}{{"", 0o711}, {"temp", 0o711}, {"control", 0o700}, {"certificates", 0o700}} {
		if err := os.MkdirAll(n.path(sub.name), sub.mode); err != nil {
			return nil, fmt.Errorf("make the gateway's folder: %w", err)
		}
	}
	if err := n.takeLock(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			n.lock.Close()
		}
	}()
	if err := n.prepare(); err != nil {
		return nil, err
	}
	n.control = newControl(n.path(controlSocket))
	n.forget()
	return n, nil
}

// takeLock makes sure that no other gateway has the folder. The lock ends with the process.
func (n *Nginx) takeLock() (err error) {
	if n.lock, err = os.OpenFile(n.path("lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("lock the gateway's folder: %w", err)
	}
	if err := syscall.Flock(int(n.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		n.lock.Close()
		return fmt.Errorf("another gateway has the folder %s: end it, or choose another folder: %w", n.options.Dir, err)
	}
	return nil
}

// prepare finds out what nginx can do here.
func (n *Nginx) prepare() error {
	who, err := workersUser()
	if err != nil {
		return err
	}
	n.render = RenderOptions{
		Dir: n.options.Dir, User: who, IPv6: hasIPv6(), HTTP2On: n.found.since(1, 25, 1), ErrorLog: n.options.ErrorLog,
	}
	if who != "" { // they need what is in temp
		if err := os.Chmod(n.options.Dir, 0o711); err != nil {
			return fmt.Errorf("let nginx' workers into the gateway's folder: %w", err)
		}
	}
	if n.render.ErrorLog == "" {
		n.render.ErrorLog = n.path("error.log")
	}
	if n.render.Modules, err = n.found.lua(n.options.Dir); err != nil {
		n.render.Modules = nil
		n.log.Warn("endpoints cannot change without a reload of nginx", "because", err)
		return nil
	}
	n.lua, n.render.Lua = true, true
	if err := write(n.path(balancerFile()), balancer); err != nil {
		return fmt.Errorf("write the balancer of endpoints: %w", err)
	}
	return nil
}

// Apply has nginx serve a configuration. Endpoints change at once, without a reload. Anything else
// is checked first, and then activated by a reload, at most one a second. After an error the last
// configuration serves on, and the next Apply tries again. c must not be changed afterwards.
func (n *Nginx) Apply(ctx context.Context, c *Config) (out Outcome, err error) {
	r := n.rendered(c)
	out.Hash = r.Hash
	n.drain = c.Settings.drain()
	running := n.master() != 0
	if running {
		var has version
		if has, out.Pushed, err = n.push(ctx, c); err != nil {
			return out, fmt.Errorf("send endpoints to nginx: %w", err)
		}
		n.note(func(s *Stats) { s.Hash = has.hash; s.Pushed += out.Pushed })
		if out.Active = has.hash == r.Hash; out.Active {
			return out, nil
		}
	}
	if out.Again = time.Until(n.next); out.Again > 0 {
		return out, nil
	}
	out.Again = 0
	if running { // it is cheap, and comes before nginx looks at the whole
		if out.Taken = n.taken(ctx, r, true, false); len(out.Taken) > 0 {
			return out, nil
		}
	}
	if n.refused.hash != r.Hash {
		if out.Taken, err = n.examine(ctx, c, r); err != nil || len(out.Taken) > 0 {
			return out, err
		}
	}
	if out.Refused, out.Held = n.refused.refused, n.refused.held; len(out.Refused) > 0 {
		if !running {
			if err := n.startLast(ctx); err != nil { // the next Apply, without these objects, starts it
				n.log.Error("nginx does not start with the last configuration", "error", err)
			}
		}
		return out, nil
	}
	if !running {
		dismissed := !n.options.External && n.dismissOrphans()
		if out.Taken = n.taken(ctx, r, false, dismissed); len(out.Taken) > 0 {
			return out, nil
		}
	}
	if err := n.activate(ctx, c, r, running); err != nil {
		return out, err
	}
	out.Active, out.Reloaded = true, true
	return out, nil
}

// rendered renders a configuration, unless only endpoints differ from the last one.
func (n *Nginx) rendered(c *Config) Rendering {
	l := &n.last
	if !n.lua || l.config == nil || l.config.Settings != c.Settings ||
		!reflect.DeepEqual(l.config.Servers, c.Servers) || !reflect.DeepEqual(l.config.Certificates, c.Certificates) {
		l.rendering = Render(c, n.render)
	}
	l.config = c
	return l.rendering
}

// examine has nginx check a configuration. If it refuses it, the objects at fault are found, or
// the address at which it cannot listen.
func (n *Nginx) examine(ctx context.Context, c *Config, r Rendering) ([]Taken, error) {
	n.refused = refusals{}
	defer n.remove("candidate.conf")
	if err := n.writeCertificates(c); err != nil {
		return nil, err
	}
	message, err := n.check(ctx, r.Text)
	if err != nil || message == "" {
		return nil, err
	}
	if taken, ok := refusedAddress(message); ok {
		return []Taken{taken}, nil
	}
	n.note(func(s *Stats) { s.Refused++ })
	v, err := n.blame(ctx, c, message, most)
	if err != nil {
		return nil, err
	}
	n.log.Error("nginx refuses a configuration: the last one serves on", "message", message, "because of", names(v.refused))
	n.refused = refusals{r.Hash, v}
	return nil, nil
}

// Try has nginx check a configuration that is not to serve yet. It returns a few objects at fault,
// and whether nginx takes the rest. It is for the goroutine of Apply.
func (n *Nginx) Try(ctx context.Context, c *Config) (refused []Refusal, takesRest bool, err error) {
	defer n.remove("candidate.conf")
	if err := n.writeCertificates(c); err != nil {
		return nil, false, err
	}
	message, err := n.check(ctx, Render(c, n.render).Text)
	if _, taken := refusedAddress(message); err != nil || message == "" || taken {
		return nil, err == nil, err // Apply finds out about addresses
	}
	v, err := n.blame(ctx, c, message, few)
	return v.refused, err == nil && v.rest == "" && len(v.held) == 0, err
}

// activate puts a configuration into place, and starts or reloads nginx.
func (n *Nginx) activate(ctx context.Context, c *Config, r Rendering, running bool) error {
	n.next = time.Now().Add(time.Second)
	if err := n.writeEndpoints(c); err != nil {
		return err
	}
	before, err := os.ReadFile(n.path("nginx.conf"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := write(n.path("nginx.conf"), r.Text); err != nil {
		return fmt.Errorf("write nginx' configuration: %w", err)
	}
	begin := time.Now()
	if err := n.serve(ctx, r.Hash, running); err != nil {
		if before != nil {
			err = errors.Join(err, write(n.path("nginx.conf"), before))
		}
		return err
	}
	n.next = time.Now().Add(time.Second)
	n.removeUnused(c)
	n.note(func(s *Stats) {
		s.Hash, s.LastReload, s.LastDuration = r.Hash, n.next.Add(-time.Second), time.Since(begin)
		if running {
			s.Reloads++
		} else {
			s.Starts++
		}
	})
	return nil
}

// serve has nginx read nginx.conf, and waits until it has.
func (n *Nginx) serve(ctx context.Context, hash string, running bool) error {
	switch {
	case running:
		pid := n.master()
		if pid == 0 {
			return errors.New("reload nginx: it has ended meanwhile")
		}
		if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
			return fmt.Errorf("reload nginx: %w", err)
		}
		if err := n.wait(ctx, hash, nil); err != nil {
			return fmt.Errorf("reload nginx: %w", err)
		}
		return nil
	case n.options.External:
		if n.socketIsStale() {
			n.remove(controlSocket) // it would not start with it
		}
		if err := n.wait(ctx, hash, nil); err != nil {
			return fmt.Errorf("nginx, which another container starts: %w", err)
		}
		return nil
	}
	return n.start(ctx, hash)
}

// startLast starts nginx with the last configuration that it took, if there is one.
func (n *Nginx) startLast(ctx context.Context) error {
	text, err := os.ReadFile(n.path("nginx.conf"))
	if err != nil || n.options.External {
		return nil
	}
	begin, hash := time.Now(), hashOf(text)
	n.next = begin.Add(time.Second)
	if err := n.start(ctx, hash); err != nil {
		return err
	}
	n.note(func(s *Stats) {
		s.Hash, s.LastReload, s.LastDuration, s.Starts = hash, time.Now(), time.Since(begin), s.Starts+1
	})
	return nil
}

func (n *Nginx) note(change func(*Stats)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.stats)
}

// Stats returns counts for metrics.
func (n *Nginx) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}

// Close ends nginx, unless somebody else has started it. Its requests have the time of
// DrainTimeout, and until ctx ends. It gives the folder free.
func (n *Nginx) Close(ctx context.Context) (err error) {
	if !n.options.External {
		err = n.quit(ctx, n.drain)
	}
	return errors.Join(err, n.lock.Close())
}
