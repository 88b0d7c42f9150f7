# Run inside the image as the agent, without network, on a read-only root.
set -eu
[ "$(id -u):$(id -g)" = 10001:10001 ]
[ "$(pwd)" = /workspace ]
says() { [ "$(printf '%s' "$1" | "$2" "$3" "$4")" = 42 ]; }
says 41 /usr/bin/python3 -c 'print(int(input()) + 1)'
says 41 /usr/bin/node -e 'console.log(Number(require("fs").readFileSync(0)) + 1)'
says 41 /usr/bin/php -r 'echo intval(fgets(STDIN)) + 1, "\n";'
says 41 /usr/bin/ruby -e 'puts gets.to_i + 1'
says 41 /usr/bin/perl -e 'print <STDIN> + 1, "\n"'
says 41 /bin/bash -c 'read -r n || true; echo $((n + 1))'
/usr/bin/find /workspace -maxdepth 0 >/dev/null
echo "smoke passed: é"
