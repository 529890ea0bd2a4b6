package nginx

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serving adds an upstream with this handler.
func (c *Config) serving(t *testing.T, upstream string, handler http.HandlerFunc) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c.Upstreams[upstream] = []string{server.Listener.Addr().String()}
}

func TestAConnectionIsUpgraded(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("u.example.com", at(Prefix, "/", to("echo"))))
	c.serving(t, "echo", func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "upgrade", r.Header.Get("Connection"))
		assert.Equal(t, "websocket", r.Header.Get("Upgrade"))
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, err := buffered.ReadString('\n')
		assert.NoError(t, err)
		fmt.Fprint(conn, "echo ", line)
	})
	s.apply(c)
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.plain))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: u.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusSwitchingProtocols, answer.StatusCode)
	fmt.Fprint(conn, "hello\n")
	line, err := reader.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "echo hello\n", line)
}

func TestAnEndpointThatDoesNotAnswerInTimeIs504(t *testing.T) {
	s := open(t, nil)
	rule := to("slow")
	rule.Timeout = 50 * time.Millisecond
	c := s.config(s.server("s.example.com", at(Prefix, "/", rule)))
	c.serving(t, "slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.apply(c)
	assert.Equal(t, http.StatusGatewayTimeout, s.get("http://s.example.com/").StatusCode)
}

func TestAnEndpointCannotSendARequestToAnotherRoute(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("x.example.com", at(Exact, "/secret", to("secret")), at(Prefix, "/", to("evil"))))
	c.serving(t, "evil", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Accel-Redirect", "/secret") })
	s.apply(c)
	answer := s.get("http://x.example.com/")
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	assert.Empty(t, answer.Header.Get("X-Backend"))
}

func TestBodiesAreBoundedIfTheSettingsSaySo(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("b.example.com", at(Prefix, "/", to("up"))))
	c.Settings.MaxBodyBytes = 1000
	s.apply(c)
	post := func(size int) int {
		client := s.client()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/", s.plain), strings.NewReader(strings.Repeat("x", size)))
		require.NoError(t, err)
		request.Host = "b.example.com"
		answer, err := client.Do(request)
		require.NoError(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	assert.Equal(t, http.StatusOK, post(1000))
	assert.Equal(t, http.StatusRequestEntityTooLarge, post(1001))
	c.Settings.MaxBodyBytes = 0
	s.apply(c)
	eventually(t, func() bool { return post(1<<20) == http.StatusOK }) // through a temporary file
}

func TestMoreEndpointsThanTheMemoryHoldsAreAnError(t *testing.T) {
	s := open(t, nil)
	c := s.config(s.server("m.example.com", at(Prefix, "/", to("up"))))
	s.apply(c)
	many := make([]string, 0, 1<<16)
	for i := range cap(many) {
		many = append(many, fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255))
	}
	full := clone(c)
	for i := range 70 {
		full.Upstreams[fmt.Sprint("many-", i)] = many
	}
	_, err := s.Apply(t.Context(), full)
	require.ErrorContains(t, err, "no memory")
	assert.Equal(t, 200, s.get("http://m.example.com/").StatusCode)
	assert.True(t, s.apply(c).Active)
}
