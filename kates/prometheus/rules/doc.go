// Package rules tests the dashboard and the alert rules of kates/prometheus: with Prometheus' own
// parser, that each metric and each label which they name exists, and with its engine, when the
// alerts fire.
package rules
