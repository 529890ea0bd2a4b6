package source

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/fleet"
)

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Some mistakes are found only when a client is made, or when it sends its first request.
func TestNoCredentialIsInTheStatusOrTheLogOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const server = "https://127.0.0.1:1"
		credentials := map[string]edit{
			"a-token": token(canary),
			"lines":   token(canary + "\n" + canary),
			"password": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
				u.Token, u.Username, u.Password = "", canary, canary
			},
			"certificate": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
				u.Token, u.ClientCertificateData, u.ClientKeyData = "", []byte(canary), []byte(canary)
			},
			"authority": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthorityData = []byte(canary) },
			"proxy": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				c.ProxyURL = "http://me:" + canary + "@127.0.0.1:1"
			},
			"wrong-scheme": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "ftp://me:" + canary + "@a" },
			"run":          exec("no-such-program"),
		}
		home := newHome(t)
		for name, edit := range credentials {
			must(t, home.Client.Create(t.Context(), secret("x", name, plainLabel, map[string]string{"kubeconfig": kubeconfigText(t, server, edit)}), nil))
		}
		must(t, home.Client.Create(t.Context(), secret("x", "text", plainLabel, map[string]string{"kubeconfig": canary}), nil))
		var log lines
		f, err := fleet.New(fleet.Options{
			Sources: []fleet.Source{Secrets(home.Client, SecretOptions{Allow: AllowProxy, Hosts: loopback})},
			Logger:  logr.FromSlogHandler(slog.NewTextHandler(&log, nil)),
		})
		must(t, err)
		t.Cleanup(f.Close)
		eventually(t, f, "each has failed", func() bool {
			status := f.Status()
			for _, c := range status.Clusters {
				if c.Error == "" && c.Rotation == "" {
					return false
				}
			}
			return len(status.Clusters) == len(credentials)+1
		})
		status := f.Status()
		asJSON, err := json.Marshal(status)
		must(t, err)
		for what, text := range map[string]string{"status": status.String(), "JSON": string(asJSON), "error": status.Err().Error(), "log": log.String()} {
			if text == "" || strings.Contains(text, canary) {
				t.Errorf("the %s has a credential:\n%s", what, text)
			}
		}
	})
}
