package nginx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// control talks to nginx at its control socket.
type control struct{ client *http.Client }

// newControl connects for each request: a kept connection would lead to a worker that is draining.
func newControl(socket string) control {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return control{&http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
	}}
}

// version is what nginx answers: the hash of the configuration, and the life of the master. After
// a restart its memory is empty, and the life another one.
type version struct{ hash, life string }

func (c control) version(ctx context.Context) (version, error) {
	return c.ask(ctx, http.MethodGet, "/version", nil)
}

func (c control) endpoints(ctx context.Context, lines []string) (version, error) {
	return c.ask(ctx, http.MethodPost, "/endpoints", lines)
}

func (c control) ask(ctx context.Context, method, path string, lines []string) (version, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://control"+path, strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		return version{}, err
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return version{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if err != nil {
		return version{}, err
	}
	words := strings.Fields(string(body))
	if answer.StatusCode != http.StatusOK || len(words) != 2 {
		return version{}, fmt.Errorf("nginx answers %s at its control socket: %s", answer.Status, clean(string(body)))
	}
	return version{hash: words[0], life: words[1]}, nil
}

// pushed is what nginx has of endpoints, as far as the gateway knows.
type pushed struct {
	mu      sync.Mutex        // held while they are sent, so that none is overtaken by an older one
	newest  map[string]string // lines of the last Push, by upstream's name
	life    string
	lines   map[string]string    // by upstream's name
	made    map[string]madeLine  // those of newest, by upstream's ID
	retired map[string]time.Time // names that no configuration has any more, and since when
}

// linesOf returns a line for each upstream.
func linesOf(upstreams map[string][]string) map[string]string {
	var p pushed
	p.take(upstreams)
	return p.newest
}

// madeLine is the list that a line was made of, and the name of its upstream.
type madeLine struct {
	list []string
	name string
}

// same reports whether two lists are the very same one.
func same(a, b []string) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// take takes the lists of a Push. Most are the very ones of the time before: their lines stay.
func (p *pushed) take(upstreams map[string][]string) {
	if p.made == nil {
		p.newest, p.made = make(map[string]string, len(upstreams)), make(map[string]madeLine, len(upstreams))
	}
	for id, list := range upstreams {
		one, known := p.made[id]
		if known && same(one.list, list) {
			continue
		}
		one = madeLine{list, nameOf(id)}
		p.made[id], p.newest[one.name] = one, one.name+" "+strings.Join(valid(list), " ")
	}
	if len(p.made) == len(upstreams) {
		return // none is gone
	}
	for id, one := range p.made {
		if _, still := upstreams[id]; !still {
			delete(p.made, id)
			delete(p.newest, one.name)
		}
	}
}

// wanted returns a line for each upstream of a configuration: that of the last Push, if it had the
// upstream, since that may be newer.
func (p *pushed) wanted(c *Config) map[string]string {
	lines := linesOf(c.Upstreams)
	for name := range lines {
		if line, ok := p.newest[name]; ok {
			lines[name] = line
		}
	}
	return lines
}

// differing returns the lines that nginx does not have.
func (p *pushed) differing(lines map[string]string) []string {
	var all []string
	for name, line := range lines {
		if p.lines[name] != line {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// changes returns the lines to send. An upstream that is gone is removed after the time that
// draining workers have: they may still ask for it.
func (p *pushed) changes(lines map[string]string, now time.Time, drain time.Duration) []string {
	all := p.differing(lines)
	for name := range lines {
		delete(p.retired, name)
	}
	for name := range p.lines {
		if _, ok := lines[name]; ok {
			continue
		}
		if since, ok := p.retired[name]; !ok {
			p.retired[name] = now
		} else if now.Sub(since) > drain+time.Minute {
			all = append(all, "-"+name)
		}
	}
	slices.Sort(all)
	return all
}

// sent notes what nginx has taken.
func (p *pushed) sent(changes []string) {
	for _, line := range changes {
		if name, ok := strings.CutPrefix(line, "-"); ok && !strings.Contains(name, " ") {
			delete(p.lines, name)
			delete(p.retired, name)
			continue
		}
		name, _, _ := strings.Cut(line, " ")
		p.lines[name] = line
	}
}

// push sends the endpoints that have changed, and all of them to another master than before. It
// returns which configuration nginx has.
func (n *Nginx) push(ctx context.Context, c *Config) (v version, count int, err error) {
	if !n.lua {
		v, err = n.control.version(ctx)
		return v, 0, err
	}
	n.pushed.mu.Lock()
	defer n.pushed.mu.Unlock()
	lines := n.pushed.wanted(c)
	return n.send(ctx, func() []string { return n.pushed.changes(lines, time.Now(), c.Settings.drain()) })
}

// Pushes reports whether Push changes endpoints. Else they are in the configuration, and only
// Apply changes them.
func (n *Nginx) Pushes() bool { return n.lua }

// Push sends the endpoints of upstreams to an nginx that runs, and returns how many lists have
// changed. It may be called beside Apply, which waits for nginx while that checks a configuration
// and loads it: endpoints need not wait for that. From then on these endpoints count for Apply,
// too. The lists must not be changed afterwards.
func (n *Nginx) Push(ctx context.Context, upstreams map[string][]string) (count int, err error) {
	if !n.lua {
		return 0, nil // they are in the configuration
	}
	n.pushed.mu.Lock()
	defer n.pushed.mu.Unlock()
	n.pushed.take(upstreams)
	if len(n.pushed.differing(n.pushed.newest)) == 0 || n.master() == 0 {
		return 0, nil // or Apply starts nginx with them
	}
	_, count, err = n.send(ctx, func() []string { return n.pushed.differing(n.pushed.newest) })
	if err != nil {
		return count, fmt.Errorf("send endpoints to nginx: %w", err)
	}
	n.note(func(s *Stats) { s.Pushed += count })
	return count, nil
}

// send sends lines, and is called with the lock held.
func (n *Nginx) send(ctx context.Context, lines func() []string) (v version, count int, err error) {
	for range 2 {
		everything := len(n.pushed.lines) == 0
		changes := lines()
		if len(changes) == 0 {
			v, err = n.control.version(ctx)
		} else {
			v, err = n.control.endpoints(ctx, changes)
		}
		if err != nil {
			n.forget() // some of it may have been taken
			return v, count, err
		}
		count += len(changes)
		if everything || v.life == n.pushed.life {
			n.pushed.life = v.life
			n.pushed.sent(changes)
			return v, count, nil
		}
		n.forget()
	}
	return v, count, errors.New("nginx was restarted again and again while it was sent endpoints")
}

// forget has the next push send all endpoints.
func (n *Nginx) forget() {
	n.pushed.life, n.pushed.lines, n.pushed.retired = "", map[string]string{}, map[string]time.Time{}
}

// writeEndpoints writes what a master begins with.
func (n *Nginx) writeEndpoints(c *Config) error {
	if !n.lua {
		return nil
	}
	n.pushed.mu.Lock()
	lines := n.pushed.wanted(c)
	n.pushed.mu.Unlock()
	var text strings.Builder
	for _, name := range sortedKeys(lines) {
		text.WriteString(lines[name] + "\n")
	}
	if err := write(n.path("endpoints"), []byte(text.String())); err != nil {
		return fmt.Errorf("write the endpoints that nginx starts with: %w", err)
	}
	return nil
}

// socketIsStale reports whether the control socket is there, and nobody listens at it.
func (n *Nginx) socketIsStale() bool {
	if _, err := os.Stat(n.path(controlSocket)); err != nil {
		return false
	}
	conn, err := net.Dial("unix", n.path(controlSocket))
	if err == nil {
		conn.Close()
	}
	return err != nil
}
