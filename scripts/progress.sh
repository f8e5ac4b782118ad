# Shows the progress of a program that prints many lines: its current step and the elapsed time.
# To be sourced. shellcheck shell=bash

# Reads the output of pip, and of uv in its place.
pip_step() {
  case $1 in
    Resolved*) step="$(awk '{print $2, $3}' <<< "$1")" ;;
    Downloading*iB\)) step="downloading $(awk '{print $2, $3}' <<< "$1")" ;;
    Prepared*) step='unpacking' ;;
    Collecting* | *' Collecting '*)
      ((count += 1))
      step="package $count: $(awk '{print $2}' <<< "$1")" ;;
    *Downloading*) step="package $count: $(awk '{sub(".*/", "", $2); print $2, $3, $4}' <<< "$1")" ;;
    *'is looking at multiple versions of'*)
      step="choosing a version of ${1##*multiple versions of }"
      step=${step%% to determine*} ;;
    *'Building wheel for'*) step="building $(awk '{print $4}' <<< "$1")" ;;
    *'Installing collected packages'*) step='unpacking' ;;
  esac
}

# Reads the output of cmake and make.
make_step() {
  [[ $1 =~ ^\[\ *([0-9]+)%\] ]] && step="${BASH_REMATCH[1]}% compiled"
  return 0
}

# Reads the output of apt-get.
apt_step() {
  case $1 in
    Get:* | Unpacking* | Setting*) step=$(cut -c 1-70 <<< "$1") ;;
  esac
}

# Passes each line of the standard input to a function that sets `step`. Updates one line in place
# on a terminal; elsewhere prints a line every PERIOD_S seconds, also without new input.
show_progress() {
  local reader=$1 step='preparing' count=0 line='' shown_s=$((SECONDS - ${PERIOD_S:-15})) begun_s=$SECONDS
  local status gone text
  while true; do
    IFS= read -r -t 1 line && status=0 || status=$?
    ((status == 0)) && "$reader" "$line"
    ((status > 0 && status <= 128)) && break # end of input; a status above 128 is a timeout
    gone=$((SECONDS - begun_s))
    text=$(printf '  %s, %d:%02d' "$step" $((gone / 60)) $((gone % 60)))
    if [[ -t 1 ]]; then
      printf '\r%s\033[K' "$text"
    elif ((SECONDS - shown_s >= ${PERIOD_S:-15})); then
      shown_s=$SECONDS
      echo "$text"
    fi
  done
  if [[ -t 1 ]]; then printf '\r\033[K'; fi
}
