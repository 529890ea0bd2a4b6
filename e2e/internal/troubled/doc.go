// Package troubled is a program with troubles on a real API server: see command troubled.
package troubled
