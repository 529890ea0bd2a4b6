package translate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

func TestSettingsOfAConfigMap(t *testing.T) {
	for _, test := range []struct {
		key, value string
		want       func(*nginx.Settings)
		problem    string
	}{
		{key: "workers", value: "4", want: func(s *nginx.Settings) { s.Workers = 4 }},
		{key: "workers", value: "many", problem: `InvalidSetting: workers: "many" is no number from 0 to 1024; the default stays`},
		{key: "workers", value: "-1", problem: `InvalidSetting: workers: "-1" is no number from 0 to 1024; the default stays`},
		{key: "connections", value: "1000", want: func(s *nginx.Settings) { s.Connections = 1000 }},
		{key: "connections", value: "1; daemon off", problem: `InvalidSetting: connections: "1; daemon off" is no number from 64 to 1048576; the default stays`},
		{key: "max-body-size", value: "8Mi", want: func(s *nginx.Settings) { s.MaxBodyBytes = 8 << 20 }},
		{key: "max-body-size", value: "0", want: func(s *nginx.Settings) { s.MaxBodyBytes = 0 }},
		{key: "max-body-size", value: "8m", problem: `InvalidSetting: max-body-size: "8m" is no number of bytes, such as 8Mi; 0 is no limit; the default stays`},
		{key: "max-body-size", value: "-1", problem: `InvalidSetting: max-body-size: "-1" is no number of bytes, such as 8Mi; 0 is no limit; the default stays`},
		{key: "max-body-size", value: "x", problem: `InvalidSetting: max-body-size: "x" is no number of bytes, such as 8Mi; 0 is no limit; the default stays`},
		{key: "connect-timeout", value: "500ms", want: func(s *nginx.Settings) { s.ConnectTimeout = 500 * time.Millisecond }},
		{key: "connect-timeout", value: "5", problem: `InvalidSetting: connect-timeout: "5" is no duration from 1ms to 24h, such as 30s; the default stays`},
		{key: "read-timeout", value: "1h", want: func(s *nginx.Settings) { s.ReadTimeout = time.Hour }},
		{key: "read-timeout", value: "0s", problem: `InvalidSetting: read-timeout: "0s" is no duration from 1ms to 24h, such as 30s; the default stays`},
		{key: "keep-alive", value: "10s", want: func(s *nginx.Settings) { s.KeepAlive = 10 * time.Second }},
		{key: "drain-timeout", value: "10s", want: func(s *nginx.Settings) { s.DrainTimeout = 10 * time.Second }},
		{key: "drain-timeout", value: "25h", problem: `InvalidSetting: drain-timeout: "25h" is no duration from 1ms to 24h, such as 30s; the default stays`},
		{key: "access-log", value: "false", want: func(s *nginx.Settings) { s.AccessLog = false }},
		{key: "access-log", value: "off", problem: `InvalidSetting: access-log: "off" is neither "true" nor "false"; the default stays`},
		{key: "server-tokens", value: "true", want: func(s *nginx.Settings) { s.ServerTokens = true }},
		{key: "proxy-headers", value: "false", want: func(s *nginx.Settings) { s.ProxyHeaders = false }},
		{key: "retry-endpoints", value: "1", want: func(s *nginx.Settings) { s.RetryEndpoints = 1 }},
		{key: "retry-endpoints", value: "0", problem: `InvalidSetting: retry-endpoints: "0" is no number from 1 to 10; the default stays`},
		{key: "keep-connections", value: "0", want: func(s *nginx.Settings) { s.KeepConnections = 0 }},
		{key: "worker", value: "4", problem: `UnknownSetting: there is no setting "worker"`},
	} {
		t.Run(test.key+"="+test.value, func(t *testing.T) {
			d := Translate(snapshotOf(t, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: gateway}
data: {%s: %q}
`, test.key, test.value)), Options{})
			want := defaults()
			if test.want != nil {
				test.want(&want)
			}
			assert.Equal(t, want, d.Config.Settings)
			if test.problem == "" {
				assert.Empty(t, problemsOf(d, "ConfigMap", "gateway/settings"))
			} else {
				assert.Equal(t, []string{test.problem}, problemsOf(d, "ConfigMap", "gateway/settings"))
			}
		})
	}
}

func TestABadSettingLeavesTheOthers(t *testing.T) {
	d := Translate(snapshotOf(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: gateway}
data: {access-log: maybe, workers: "3", zzz: ""}
`), Options{})
	want := defaults()
	want.Workers = 3
	assert.Equal(t, want, d.Config.Settings)
	assert.Len(t, problemsOf(d, "ConfigMap", "gateway/settings"), 2)
	assert.Equal(t, defaults(), Translate(snapshotOf(t), Options{}).Config.Settings, "no ConfigMap")
}
